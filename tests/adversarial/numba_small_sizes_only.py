# row: 22
# problem: vector_add
# on: both
# expect: wrong_answer
# why: Right for the smallest sizes only.
from numba import cuda


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < min(n, 300):
    out[i] = x[i] + y[i]
