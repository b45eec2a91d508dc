# row: -
# problem: vector_add
# on: both
# expect: compile_error
# why: More shared memory than any block has.
from numba import cuda, float32


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
  s = cuda.shared.array(100000000, float32)
  s[0] = 1
