import math

from numba import cuda


@cuda.jit
def rotary_embedding(x, angle, out, tokens, pairs):
  t = cuda.blockIdx.x
  for j in range(cuda.threadIdx.x, pairs, cuda.blockDim.x):
    a, b = x[t, 2 * j], x[t, 2 * j + 1]
    c, s = math.cos(angle[t, j]), math.sin(angle[t, j])
    out[t, 2 * j] = a * c - b * s
    out[t, 2 * j + 1] = a * s + b * c
