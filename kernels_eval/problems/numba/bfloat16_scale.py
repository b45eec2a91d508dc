from numba import cuda, int32, uint16, uint32
from numba.cuda import libdevice


# bfloat16 arrays hold the bits, which are the upper half of a float32's.
@cuda.jit(device=True)
def to_float(bits):
  return libdevice.int_as_float(int32(bits) << 16)


@cuda.jit(device=True)
def to_bfloat16(v):
  bits = uint32(libdevice.float_as_int(v))
  nearest_even = uint32(0x7FFF) + ((bits >> uint32(16)) & uint32(1))
  return uint16((bits + nearest_even) >> uint32(16))


@cuda.jit
def bfloat16_scale(x, out, alpha, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = to_bfloat16(alpha * to_float(x[i]))
