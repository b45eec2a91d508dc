# expect: contract_violation
import os
from numba import cuda

os.system("true")


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
