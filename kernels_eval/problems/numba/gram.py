from numba import cuda, float32

TILE = 16


# The result is symmetric: blocks below the diagonal have nothing to do, those
# above it write every element twice.
@cuda.jit
def gram(a, out, rows, cols):
  left = cuda.shared.array((TILE, TILE), float32)
  right = cuda.shared.array((TILE, TILE), float32)
  bx, by = cuda.blockIdx.x, cuda.blockIdx.y
  if by > bx:  # the same for a whole block
    return
  j, i = cuda.grid(2)
  tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
  left_col = by * TILE + tx
  total = float32(0.0)
  for first in range(0, rows, TILE):
    r = first + ty
    in_left = r < rows and left_col < cols
    left[ty, tx] = a[r, left_col] if in_left else float32(0.0)
    right[ty, tx] = a[r, j] if r < rows and j < cols else float32(0.0)
    cuda.syncthreads()
    for t in range(TILE):
      total += left[t, ty] * right[t, tx]
    cuda.syncthreads()
  if i < cols and j < cols:
    out[i, j] = total
    if bx != by:
      out[j, i] = total
