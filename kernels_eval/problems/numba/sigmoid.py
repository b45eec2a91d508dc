import math

from numba import cuda, float32


@cuda.jit(device=True)
def logistic(v):
  return float32(1.0) / (float32(1.0) + math.exp(-v))


@cuda.jit
def sigmoid(x, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = logistic(x[i])
