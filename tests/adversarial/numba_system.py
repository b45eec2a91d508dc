# row: -
# problem: vector_add
# on: both
# expect: contract_violation
# why: Starts a program when imported.
import os
from numba import cuda

os.system("true")


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
