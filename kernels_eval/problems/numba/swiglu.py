import math

from numba import cuda, float32

TILE = 16


# Both products share the tile of x.
@cuda.jit
def swiglu(x, gate, up, out, rows, inner, hidden):
  tile_x = cuda.shared.array((TILE, TILE), float32)
  tile_gate = cuda.shared.array((TILE, TILE), float32)
  tile_up = cuda.shared.array((TILE, TILE), float32)
  j, r = cuda.grid(2)
  tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
  g, u = float32(0.0), float32(0.0)
  for first in range(0, inner, TILE):
    kx, kw = first + tx, first + ty
    in_weights = kw < inner and j < hidden
    tile_x[ty, tx] = x[r, kx] if r < rows and kx < inner else float32(0.0)
    tile_gate[ty, tx] = gate[kw, j] if in_weights else float32(0.0)
    tile_up[ty, tx] = up[kw, j] if in_weights else float32(0.0)
    cuda.syncthreads()
    for t in range(TILE):
      g += tile_x[ty, t] * tile_gate[t, tx]
      u += tile_x[ty, t] * tile_up[t, tx]
    cuda.syncthreads()
  if r < rows and j < hidden:
    out[r, j] = g / (float32(1.0) + math.exp(-g)) * u
