# row: 19
# problem: vector_add
# on: both
# expect: wrong_answer
# why: Copies an input.
from numba import cuda


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i]
