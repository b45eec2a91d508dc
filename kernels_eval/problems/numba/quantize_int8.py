from numba import cuda, int8
from numba.cuda import libdevice


# The division is exact: scale is a power of two. float2int_rn rounds halves to
# the even number and saturates.
@cuda.jit
def quantize_int8(x, out, scale, n):
  i = cuda.grid(1)
  if i < n:
    q = libdevice.float2int_rn(x[i] / scale)
    out[i] = int8(max(-128, min(127, q)))
