import math

from numba import cuda, float32


# One warp per row, eight rows per block.
# launch: row_max grid=(ceil_div(rows, 8)) block=(32, 8)
@cuda.jit
def row_max(x, out, rows, cols):
  r = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
  lane = cuda.threadIdx.x
  if r < rows:  # the same for a whole warp
    highest = float32(-math.inf)
    for c in range(lane, cols, 32):
      highest = max(highest, x[r, c])
    offset = 16
    while offset > 0:
      other = cuda.shfl_down_sync(0xFFFFFFFF, highest, offset)
      highest = max(highest, other)
      offset //= 2
    if lane == 0:
      out[r] = highest
