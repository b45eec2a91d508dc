from numba import cuda, float32

TILE = 16
SIDE = TILE + 2


# One filter per block.z. For each channel a tile of the input with its halo and
# the nine weights lie in shared memory.
@cuda.jit
def conv2d_3x3(x, weight, out, filters, channels, height, width):
  tile = cuda.shared.array((SIDE, SIDE), float32)
  taps = cuda.shared.array((3, 3), float32)
  j, i, f = cuda.grid(3)
  tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
  first_row = cuda.blockIdx.y * TILE - 1
  first_col = cuda.blockIdx.x * TILE - 1
  total = float32(0.0)
  for k in range(channels):
    for a in range(ty, SIDE, TILE):
      for b in range(tx, SIDE, TILE):
        r, c = first_row + a, first_col + b
        is_inside = r >= 0 and r < height and c >= 0 and c < width
        tile[a, b] = x[k, r, c] if is_inside else float32(0.0)
    if tx < 3 and ty < 3:
      taps[ty, tx] = weight[f, k, ty, tx]
    cuda.syncthreads()
    for a in range(3):
      for b in range(3):
        total += tile[ty + a, tx + b] * taps[a, b]
    cuda.syncthreads()  # before the next channel overwrites the tile
  if i < height and j < width:
    out[f, i, j] = total
