from numba import cuda, float32
from numba.cuda import libdevice


@cuda.jit
def hard_swish(x, out, n):
  i = cuda.grid(1)
  if i < n:
    v = x[i]
    out[i] = v * libdevice.saturatef((v + float32(3.0)) / float32(6.0))
