# expect: contract_violation
from numba import cuda

TEXT = open("/etc/passwd").read()


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
