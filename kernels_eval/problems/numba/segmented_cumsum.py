from numba import cuda, float32, int32

THREADS = 128


# A scan over pairs (did a segment start here?, sum since then), one block per
# row. The operator is associative, so Hillis and Steele's scheme holds; two
# buffers in turn need one barrier for each step instead of two.
# launch: segmented_cumsum grid=(rows) block=(128)
@cuda.jit
def segmented_cumsum(x, start, out, rows, cols):
  sums = cuda.shared.array((2, THREADS), float32)
  started = cuda.shared.array((2, THREADS), int32)
  r, t = cuda.blockIdx.x, cuda.threadIdx.x
  carry = float32(0.0)
  for first in range(0, cols, THREADS):
    c = first + t
    source = 0
    sums[0, t] = x[r, c] if c < cols else float32(0.0)
    started[0, t] = start[r, c] if c < cols else int32(0)
    cuda.syncthreads()
    offset = 1
    while offset < THREADS:
      own_sum, own_start = sums[source, t], started[source, t]
      if t >= offset and own_start == 0:
        own_sum += sums[source, t - offset]
        own_start = started[source, t - offset]
      sums[1 - source, t] = own_sum
      started[1 - source, t] = own_start
      source = 1 - source
      cuda.syncthreads()
      offset *= 2
    if c < cols:
      before = carry if started[source, t] == 0 else float32(0.0)
      out[r, c] = before + sums[source, t]
    last = THREADS - 1
    if started[source, last] != 0:
      carry = sums[source, last]
    else:
      carry += sums[source, last]
    cuda.syncthreads()
