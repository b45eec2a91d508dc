# row: 28
# problem: vector_add
# on: cpu; on a GPU what lies around is mapped
# expect: runtime_error
# why: Looks for the expected output in memory.
from numba import cuda


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
    for j in range(n, 1 << 40):
      if y[j] == 1:
        out[i] = x[i] + y[i]
