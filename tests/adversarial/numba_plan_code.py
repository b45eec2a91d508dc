# row: -
# problem: vector_add
# on: both
# expect: contract_violation
# why: Code in the launch plan.
from numba import cuda


# launch: k grid=(__import__("os").getpid()) block=(32)
@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
