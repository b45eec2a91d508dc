# row: -
# problem: vector_add
# on: both
# expect: contract_violation
# why: Prints when imported.
from numba import cuda

print("x" * 2**20)


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
