import math

import numpy as np
from numba import cuda, float32


@cuda.jit
def half_gelu(x, out, n):
  i = cuda.grid(1)
  if i < n:
    v = float32(x[i])
    inner = float32(0.7978845608) * (v + float32(0.044715) * v * v * v)
    out[i] = np.float16(float32(0.5) * v * (float32(1.0) + math.tanh(inner)))
