import math

from numba import cuda, float32

WARPS = 4


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


# launch: cross_entropy grid=(rows) block=(128)
@cuda.jit
def cross_entropy(logits, label, out, rows, classes):
  highest_of = cuda.shared.array(WARPS, float32)
  sum_of = cuda.shared.array(WARPS, float32)
  r, t = cuda.blockIdx.x, cuda.threadIdx.x
  lane, warp = t % 32, t // 32
  highest = float32(-math.inf)
  for c in range(t, classes, cuda.blockDim.x):
    highest = max(highest, logits[r, c])
  highest = warp_max(highest)
  if lane == 0:
    highest_of[warp] = highest
  cuda.syncthreads()
  for w in range(WARPS):
    highest = max(highest, highest_of[w])
  total = float32(0.0)
  for c in range(t, classes, cuda.blockDim.x):
    total += math.exp(logits[r, c] - highest)
  total = warp_sum(total)
  if lane == 0:
    sum_of[warp] = total
  cuda.syncthreads()
  if t == 0:
    total = float32(0.0)
    for w in range(WARPS):
      total += sum_of[w]
    out[r] = math.log(total) + (highest - logits[r, label[r]])
