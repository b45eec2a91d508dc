# row: 26
# problem: vector_add
# on: both
# expect: contract_violation
# why: Opens a file when imported.
from numba import cuda

TEXT = open("/etc/passwd").read()


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
