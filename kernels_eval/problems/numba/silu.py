import math

from numba import cuda, float32


@cuda.jit
def silu(x, out, n):
  i = cuda.grid(1)
  if i < n:
    v = x[i]
    out[i] = v / (float32(1.0) + math.exp(-v))
