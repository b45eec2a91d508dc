# row: -
# problem: vector_add
# on: both
# expect: contract_violation
# why: A decorator that is no cuda.jit.
from numba import cuda


def cheat(function):
  return function


@cheat
@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
