# row: -
# problem: vector_add
# on: both
# expect: passed timeout
# why: Prints from every thread without end.
from numba import cuda


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
    for j in range(1000):
      print("xxxxxxxxxxxxxxxxxxxxxxxx", j)
