# row: -
# problem: vector_add
# on: both
# expect: contract_violation
# why: Ends the process when imported.
import os
from numba import cuda

os._exit(0)


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
