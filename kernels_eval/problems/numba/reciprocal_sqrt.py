from numba import cuda
from numba.cuda import libdevice


@cuda.jit
def reciprocal_sqrt(x, out, epsilon, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = libdevice.rsqrtf(x[i] + epsilon)
