# row: -
# problem: vector_add
# on: both
# expect: timeout
# why: A kernel that does not end.
from numba import cuda


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
    while out[i] == out[i]:
      out[i] = out[i]
