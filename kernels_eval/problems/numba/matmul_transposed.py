from numba import cuda, float32

TILE, EACH, DEPTH = 32, 4, 8
SIDE, WIDTH = TILE // EACH, TILE + 1


# A block of 64 threads makes 32 x 32 results, each thread 4 x 4 of them in
# registers. Both tiles are stored with the inner dimension first.
# launch: matmul grid=(ceil_div(n, 32), ceil_div(m, 32)) block=(8, 8)
@cuda.jit
def matmul(a, b, out, m, n, k):
  tile_a = cuda.shared.array((DEPTH, WIDTH), float32)
  tile_b = cuda.shared.array((DEPTH, WIDTH), float32)
  total = cuda.local.array((EACH, EACH), float32)
  tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
  first_i, first_j = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
  for u in range(EACH):
    for v in range(EACH):
      total[u, v] = float32(0.0)
  for first in range(0, k, DEPTH):
    for e in range(ty * SIDE + tx, TILE * DEPTH, SIDE * SIDE):
      row, t = e // DEPTH, e % DEPTH
      in_a = first + t < k and first_i + row < m
      in_b = first + t < k and first_j + row < n
      tile_a[t, row] = a[first_i + row, first + t] if in_a else float32(0.0)
      tile_b[t, row] = b[first_j + row, first + t] if in_b else float32(0.0)
    cuda.syncthreads()
    for t in range(DEPTH):
      for u in range(EACH):
        for v in range(EACH):
          total[u, v] += tile_a[t, ty + u * SIDE] * tile_b[t, tx + v * SIDE]
    cuda.syncthreads()
  for u in range(EACH):
    for v in range(EACH):
      i, j = first_i + ty + u * SIDE, first_j + tx + v * SIDE
      if i < m and j < n:
        out[i, j] = total[u, v]
