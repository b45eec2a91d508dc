import numpy as np
from numba import cuda

# Horner's rule, highest power first, from constant memory.
COEFFICIENTS = np.array([-0.125, 0.25, -0.5, 1.0], np.float32)


@cuda.jit
def polynomial(x, out, n):
  coefficients = cuda.const.array_like(COEFFICIENTS)
  i = cuda.grid(1)
  if i < n:
    v = x[i]
    total = coefficients[0]
    for k in range(1, 4):
      total = total * v + coefficients[k]
    out[i] = total
