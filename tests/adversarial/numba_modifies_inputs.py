# row: 17
# problem: vector_add
# on: both
# expect: integrity_violation
# why: Changes the inputs so that zeros are right.
from numba import cuda


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
    x[i] = 0
