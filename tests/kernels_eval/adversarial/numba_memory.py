# expect: contract_violation compile_error
from numba import cuda

BIG = b"x" * 2**30


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
