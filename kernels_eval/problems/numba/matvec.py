from numba import cuda, float32


# One warp per row, four rows per block.
# launch: matvec grid=(ceil_div(rows, 4)) block=(32, 4)
@cuda.jit
def matvec(a, x, out, rows, cols):
  r = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
  if r >= rows:
    return
  total = float32(0.0)
  for c in range(cuda.threadIdx.x, cols, 32):
    total += a[r, c] * x[c]
  offset = 16
  while offset > 0:
    total += cuda.shfl_down_sync(0xFFFFFFFF, total, offset)
    offset //= 2
  if cuda.threadIdx.x == 0:
    out[r] = total
