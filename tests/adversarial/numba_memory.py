# row: -
# problem: vector_add
# on: both
# expect: contract_violation compile_error
# why: Takes memory when imported.
from numba import cuda

BIG = b"x" * 2**30


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
