import math

from numba import cuda, float32

SQRT_2_OVER_PI = float32(0.7978845608)


@cuda.jit(device=True)
def gelu_tanh(v):
  inner = SQRT_2_OVER_PI * (v + float32(0.044715) * v * v * v)
  return float32(0.5) * v * (float32(1.0) + math.tanh(inner))


@cuda.jit
def gelu(x, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = gelu_tanh(x[i])
