# row: -
# problem: vector_add
# on: cpu; the driver and the device set other limits
# expect: runtime_error compile_error timeout
# why: A local array of many megabytes.
from numba import cuda, float32


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
  s = cuda.local.array(100000000, float32)
  s[i] = i
  out[0] = s[i]
