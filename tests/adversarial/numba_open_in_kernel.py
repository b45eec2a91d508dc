# row: -
# problem: vector_add
# on: both
# expect: contract_violation
# why: Opens a file in the kernel.
from numba import cuda


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
    open("/etc/passwd")
