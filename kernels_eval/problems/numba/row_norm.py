import math

from numba import cuda, float32


# launch: row_norm grid=(rows) block=(128) smem=4*128
@cuda.jit
def row_norm(x, out, rows, cols):
  partial = cuda.shared.array(0, float32)
  r, t = cuda.blockIdx.x, cuda.threadIdx.x
  total = float32(0.0)
  for c in range(t, cols, cuda.blockDim.x):
    total += x[r, c] * x[r, c]
  partial[t] = total
  cuda.syncthreads()
  half = cuda.blockDim.x // 2
  while half > 0:
    if t < half:
      partial[t] += partial[t + half]
    cuda.syncthreads()
    half //= 2
  if t == 0:
    out[r] = math.sqrt(partial[0])
