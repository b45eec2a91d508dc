from numba import cuda, float32

TILE = 16
SIDE = TILE + 2


@cuda.jit(device=True)
def inside(i, size):
  return min(max(i, 0), size - 1)


# 18 x 18 elements for 16 x 16 threads: some load several.
@cuda.jit
def stencil_2d_5point(x, out, alpha, rows, cols):
  tile = cuda.shared.array((SIDE, SIDE), float32)
  tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
  first_row = cuda.blockIdx.y * TILE - 1
  first_col = cuda.blockIdx.x * TILE - 1
  for i in range(ty, SIDE, TILE):
    for j in range(tx, SIDE, TILE):
      tile[i, j] = x[inside(first_row + i, rows), inside(first_col + j, cols)]
  cuda.syncthreads()
  c, r = cuda.grid(2)
  if r < rows and c < cols:
    i, j = ty + 1, tx + 1
    around = tile[i - 1, j] + tile[i + 1, j] + tile[i, j - 1] + tile[i, j + 1]
    out[r, c] = tile[i, j] + alpha * (around - float32(4.0) * tile[i, j])
