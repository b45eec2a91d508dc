# row: 24
# problem: vector_add
# on: both
# expect: contract_violation
# why: Host code: launches its own kernel.
from numba import cuda


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]


k[1, 32](1, 2, 3, 4)
