import numpy as np
from numba import cuda, float32

TILE = 16


# Tiles stay in half, sums are in float.
@cuda.jit
def half_matmul(a, b, out, m, n, k):
  tile_a = cuda.shared.array((TILE, TILE), np.float16)
  tile_b = cuda.shared.array((TILE, TILE), np.float16)
  j, i = cuda.grid(2)
  tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
  total = float32(0.0)
  for first in range(0, k, TILE):
    tile_a[ty, tx] = np.float16(0.0)
    tile_b[ty, tx] = np.float16(0.0)
    if i < m and first + tx < k:
      tile_a[ty, tx] = a[i, first + tx]
    if first + ty < k and j < n:
      tile_b[ty, tx] = b[first + ty, j]
    cuda.syncthreads()
    for t in range(TILE):
      total += float32(tile_a[ty, t]) * float32(tile_b[t, tx])
    cuda.syncthreads()
  if i < m and j < n:
    out[i, j] = np.float16(total)
