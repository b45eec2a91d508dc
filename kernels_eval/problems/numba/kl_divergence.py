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


# Largest element of the row, and log of the sum of exp relative to it.
@cuda.jit(device=True)
def log_normalizer(x, r):
  highest = float32(-math.inf)
  for c in range(cuda.threadIdx.x, x.shape[1], 32):
    highest = max(highest, x[r, c])
  highest = warp_max(highest)
  total = float32(0.0)
  for c in range(cuda.threadIdx.x, x.shape[1], 32):
    total += math.exp(x[r, c] - highest)
  return highest, math.log(warp_sum(total))


# One warp per row.
# launch: kl_divergence grid=(ceil_div(rows, 4)) block=(32, 4)
@cuda.jit
def kl_divergence(x, y, out, rows, cols):
  r = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
  if r >= rows:
    return
  highest_x, log_sum_x = log_normalizer(x, r)
  highest_y, log_sum_y = log_normalizer(y, r)
  total = float32(0.0)
  for c in range(cuda.threadIdx.x, cols, 32):
    log_p = (x[r, c] - highest_x) - log_sum_x
    log_q = (y[r, c] - highest_y) - log_sum_y
    total += math.exp(log_p) * (log_p - log_q)
  total = warp_sum(total)
  if cuda.threadIdx.x == 0:
    out[r] = total
