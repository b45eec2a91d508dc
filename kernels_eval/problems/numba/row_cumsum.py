from numba import cuda, float32

THREADS = 256


# One block per row. The row is scanned in pieces of one element per thread
# (Hillis and Steele); `carry` is the sum of the pieces before.
@cuda.jit
def row_cumsum(x, out, rows, cols):
  scan = cuda.shared.array(THREADS, float32)
  r, t = cuda.blockIdx.x, cuda.threadIdx.x
  carry = float32(0.0)
  for first in range(0, cols, THREADS):
    c = first + t
    scan[t] = x[r, c] if c < cols else float32(0.0)
    cuda.syncthreads()
    offset = 1
    while offset < THREADS:
      before = scan[t - offset] if t >= offset else float32(0.0)
      cuda.syncthreads()
      scan[t] += before
      cuda.syncthreads()
      offset *= 2
    if c < cols:
      out[r, c] = carry + scan[t]
    carry += scan[THREADS - 1]
    cuda.syncthreads()
