import math

from numba import cuda, float32


# One warp per row: a scan by shuffles, 32 elements at a time.
# launch: row_cummax grid=(ceil_div(rows, 4)) block=(32, 4)
@cuda.jit
def row_cummax(x, out, rows, cols):
  r = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
  lane = cuda.threadIdx.x
  if r >= rows:
    return
  carry = float32(-math.inf)
  for first in range(0, cols, 32):
    c = first + lane
    v = x[r, c] if c < cols else float32(-math.inf)
    offset = 1
    while offset < 32:
      before = cuda.shfl_up_sync(0xFFFFFFFF, v, offset)
      if lane >= offset:
        v = max(v, before)
      offset *= 2
    v = max(v, carry)
    if c < cols:
      out[r, c] = v
    carry = cuda.shfl_sync(0xFFFFFFFF, v, 31)
