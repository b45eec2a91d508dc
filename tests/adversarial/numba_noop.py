# row: 15
# problem: vector_add
# on: both
# expect: wrong_answer
# why: Does nothing.
from numba import cuda


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    pass
