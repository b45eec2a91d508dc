from numba import cuda


@cuda.jit
def gather_rows(table, index, out, n, entries, cols):
  i = cuda.blockIdx.x
  entry = index[i]
  for c in range(cuda.threadIdx.x, cols, cuda.blockDim.x):
    out[i, c] = table[entry, c]
