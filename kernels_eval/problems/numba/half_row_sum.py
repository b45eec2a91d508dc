import numpy as np
from numba import cuda, float32

THREADS = 256


@cuda.jit
def half_row_sum(x, out, rows, cols):
  partial = cuda.shared.array(THREADS, float32)
  r, t = cuda.blockIdx.x, cuda.threadIdx.x
  total = float32(0.0)
  for c in range(t, cols, THREADS):
    total += float32(x[r, c])
  partial[t] = total
  cuda.syncthreads()
  half = THREADS // 2
  while half > 0:
    if t < half:
      partial[t] += partial[t + half]
    cuda.syncthreads()
    half //= 2
  if t == 0:
    out[r] = np.float16(partial[0])
