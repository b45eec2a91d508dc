# expect: contract_violation
from numba import cuda


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]


k[1, 32](1, 2, 3, 4)
