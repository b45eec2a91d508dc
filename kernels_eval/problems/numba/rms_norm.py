from numba import cuda, float32
from numba.cuda import libdevice


@cuda.jit(device=True)
def warp_sum(v):
  offset = 16
  while offset > 0:
    v += cuda.shfl_xor_sync(0xFFFFFFFF, v, offset)
    offset //= 2
  return v


# One warp per row, four rows per block.
# launch: rms_norm grid=(ceil_div(rows, 4)) block=(32, 4)
@cuda.jit
def rms_norm(x, gamma, out, rows, cols):
  r = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
  if r >= rows:
    return
  total = float32(0.0)
  for c in range(cuda.threadIdx.x, cols, 32):
    total += x[r, c] * x[r, c]
  mean_square = warp_sum(total) / float32(cols)
  scale = libdevice.rsqrtf(mean_square + float32(1e-6))
  for c in range(cuda.threadIdx.x, cols, 32):
    out[r, c] = x[r, c] * scale * gamma[c]
