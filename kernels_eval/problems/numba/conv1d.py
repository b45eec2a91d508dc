from numba import cuda, float32


# The filter comes to shared memory first: all threads read all of it.
# launch: conv1d grid=(ceil_div(n - taps + 1, 256)) block=(256) smem=4*taps
@cuda.jit
def conv1d(x, weight, out, n, taps):
  taps_here = cuda.shared.array(0, float32)
  for j in range(cuda.threadIdx.x, taps, cuda.blockDim.x):
    taps_here[j] = weight[j]
  cuda.syncthreads()
  i = cuda.grid(1)
  if i < out.size:
    total = float32(0.0)
    for j in range(taps):
      total += x[i + j] * taps_here[j]
    out[i] = total
