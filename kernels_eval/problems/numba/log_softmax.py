import math

from numba import cuda, float32


@cuda.jit(device=True)
def warp_max(v):
  offset = 16
  while offset > 0:
    v = max(v, cuda.shfl_xor_sync(0xFFFFFFFF, v, offset))
    offset //= 2
  return v


@cuda.jit(device=True)
def warp_sum(v):
  offset = 16
  while offset > 0:
    v += cuda.shfl_xor_sync(0xFFFFFFFF, v, offset)
    offset //= 2
  return v


# One warp per row; xor shuffles leave the result in every lane.
# launch: log_softmax grid=(ceil_div(rows, 4)) block=(32, 4)
@cuda.jit
def log_softmax(x, out, rows, cols):
  r = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
  lane = cuda.threadIdx.x
  if r >= rows:
    return
  highest = float32(-math.inf)
  for c in range(lane, cols, 32):
    highest = max(highest, x[r, c])
  highest = warp_max(highest)
  total = float32(0.0)
  for c in range(lane, cols, 32):
    total += math.exp(x[r, c] - highest)
  shift = highest + math.log(warp_sum(total))
  for c in range(lane, cols, 32):
    out[r, c] = x[r, c] - shift
