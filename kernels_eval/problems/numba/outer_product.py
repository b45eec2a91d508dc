from numba import cuda, float32

TILE = 16


# The block's parts of both vectors are staged in shared memory, so that each
# element is loaded once per block and not once per thread.
@cuda.jit
def outer_product(x, y, out, m, n):
  left = cuda.shared.array(TILE, float32)
  top = cuda.shared.array(TILE, float32)
  j, i = cuda.grid(2)
  tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
  if tx == 0 and i < m:
    left[ty] = x[i]
  if ty == 0 and j < n:
    top[tx] = y[j]
  cuda.syncthreads()
  if i < m and j < n:
    out[i, j] = left[ty] * top[tx]
