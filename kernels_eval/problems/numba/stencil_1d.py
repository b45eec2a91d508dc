import numpy as np
from numba import cuda, float32

RADIUS, THREADS = 2, 256
WIDTH = THREADS + 2 * RADIUS
WEIGHTS = np.array([0.0625, 0.25, 0.375, 0.25, 0.0625], np.float32)


# The block's elements and a halo on both sides lie in shared memory.
@cuda.jit
def stencil_1d(x, out, n):
  window = cuda.shared.array(WIDTH, float32)
  weights = cuda.const.array_like(WEIGHTS)
  t = cuda.threadIdx.x
  first = cuda.blockIdx.x * THREADS - RADIUS
  for k in range(t, WIDTH, THREADS):
    i = first + k
    window[k] = x[i] if 0 <= i and i < n else float32(0.0)
  cuda.syncthreads()
  i = cuda.grid(1)
  if i < n:
    total = float32(0.0)
    for k in range(2 * RADIUS + 1):
      total += weights[k] * window[t + k]
    out[i] = total
