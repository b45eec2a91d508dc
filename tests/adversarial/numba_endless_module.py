# row: -
# problem: vector_add
# on: both
# expect: contract_violation
# why: A loop at module level.
from numba import cuda

while True:
  pass


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
