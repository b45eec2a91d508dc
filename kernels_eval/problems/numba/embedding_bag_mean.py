from numba import cuda, float32


@cuda.jit
def embedding_bag_mean(table, index, out, bags, length, entries, cols):
  bag = cuda.blockIdx.x
  for c in range(cuda.threadIdx.x, cols, cuda.blockDim.x):
    total = float32(0.0)
    for j in range(length):
      total += table[index[bag, j], c]
    out[bag, c] = total / float32(length)
