# row: -
# problem: vector_add
# on: both
# expect: contract_violation
# why: Links a file of the machine.
from numba import cuda


@cuda.jit(link=["/etc/passwd"])
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
