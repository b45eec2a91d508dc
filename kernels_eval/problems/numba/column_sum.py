from numba import cuda, float32

COLS, ROWS = 32, 8


# A block takes 32 columns: neighbouring threads read neighbouring columns, and
# eight rows at a time are added up in shared memory at the end.
# launch: column_sum grid=(ceil_div(cols, 32)) block=(32, 8)
@cuda.jit
def column_sum(x, out, rows, cols):
  partial = cuda.shared.array((ROWS, COLS), float32)
  tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
  c = cuda.blockIdx.x * COLS + tx
  total = float32(0.0)
  if c < cols:
    for r in range(ty, rows, ROWS):
      total += x[r, c]
  partial[ty, tx] = total
  cuda.syncthreads()
  if ty == 0 and c < cols:
    for k in range(1, ROWS):
      total += partial[k, tx]
    out[c] = total
