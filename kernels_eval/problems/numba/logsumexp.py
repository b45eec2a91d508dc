import math

from numba import cuda, float32


# A lane that saw no element has sum 0 and highest -inf; -inf - -inf is NaN.
@cuda.jit(device=True)
def merge(highest, total, other_highest, other_total):
  top = max(highest, other_highest)
  mine, theirs = float32(0.0), float32(0.0)
  if total != float32(0.0):
    mine = total * math.exp(highest - top)
  if other_total != float32(0.0):
    theirs = other_total * math.exp(other_highest - top)
  return top, mine + theirs


# One pass: a warp keeps the highest value so far and the sum relative to it,
# and merges the pairs of its lanes with shuffles.
# launch: logsumexp grid=(ceil_div(rows, 4)) block=(32, 4)
@cuda.jit
def logsumexp(x, out, rows, cols):
  r = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
  if r >= rows:
    return
  highest, total = float32(-math.inf), float32(0.0)
  for c in range(cuda.threadIdx.x, cols, 32):
    highest, total = merge(highest, total, x[r, c], float32(1.0))
  offset = 16
  while offset > 0:
    other_highest = cuda.shfl_xor_sync(0xFFFFFFFF, highest, offset)
    other_total = cuda.shfl_xor_sync(0xFFFFFFFF, total, offset)
    highest, total = merge(highest, total, other_highest, other_total)
    offset //= 2
  if cuda.threadIdx.x == 0:
    out[r] = highest + math.log(total)
