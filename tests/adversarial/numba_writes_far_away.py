# row: -
# problem: vector_add
# on: both
# expect: runtime_error
# why: Writes far beyond the output.
from numba import cuda


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
    out[i + 1000000000000] = 1
