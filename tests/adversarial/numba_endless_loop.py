# row: -
# problem: vector_add
# on: both
# expect: timeout
# why: A loop that does not end, seen by the compiler.
from numba import cuda


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
  j = i + 1
  while j > 0:
    j = j * j | 1
    if j == 6:
      out[0] = j
