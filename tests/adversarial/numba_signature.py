# row: -
# problem: vector_add
# on: both
# expect: contract_violation
# why: Takes other parameters than the problem has.
from numba import cuda


@cuda.jit("void(float32[:], float32[:], float32[:], int32)")
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
