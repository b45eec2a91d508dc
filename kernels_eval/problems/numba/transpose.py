from numba import cuda, float32

TILE = 32
WIDTH = TILE + 1
ROWS_AT_ONCE = 8


# Reads and writes both go along rows; the turn happens in shared memory. The
# 33rd column keeps a column of the tile in 32 different banks.
@cuda.jit
def transpose(x, out, rows, cols):
  tile = cuda.shared.array((TILE, WIDTH), float32)
  tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
  first_row, first_col = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
  for k in range(ty, TILE, ROWS_AT_ONCE):
    if first_row + k < rows and first_col + tx < cols:
      tile[k, tx] = x[first_row + k, first_col + tx]
  cuda.syncthreads()
  for k in range(ty, TILE, ROWS_AT_ONCE):
    if first_col + k < cols and first_row + tx < rows:
      out[first_col + k, first_row + tx] = tile[tx, k]
