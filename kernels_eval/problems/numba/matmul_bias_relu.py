from numba import cuda, float32

TILE = 16


# Tiles of both matrices lie in shared memory; what is outside of a matrix is 0
# there, so that every thread takes part in every barrier.
@cuda.jit
def matmul_bias_relu(a, b, bias, out, m, n, k):
  tile_a = cuda.shared.array((TILE, TILE), float32)
  tile_b = cuda.shared.array((TILE, TILE), float32)
  j, i = cuda.grid(2)
  tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
  total = bias[j] if j < n else float32(0.0)
  for first in range(0, k, TILE):
    ka, kb = first + tx, first + ty
    tile_a[ty, tx] = a[i, ka] if i < m and ka < k else float32(0.0)
    tile_b[ty, tx] = b[kb, j] if kb < k and j < n else float32(0.0)
    cuda.syncthreads()
    for t in range(TILE):
      total += tile_a[ty, t] * tile_b[t, tx]
    cuda.syncthreads()
  if i < m and j < n:
    out[i, j] = max(total, float32(0.0))
