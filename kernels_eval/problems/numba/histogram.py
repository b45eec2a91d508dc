from numba import cuda, int32


# Each block counts in shared memory and adds its counts to the result once.
# launch: clear grid=(ceil_div(bins, 256)) block=(256) args=(out, bins)
# launch: histogram grid=(ceil_div(n, 1024)) block=(256) smem=4*bins
@cuda.jit
def clear(out, bins):
  b = cuda.grid(1)
  if b < bins:
    out[b] = 0


@cuda.jit
def histogram(x, out, n, bins):
  counts = cuda.shared.array(0, int32)
  for b in range(cuda.threadIdx.x, bins, cuda.blockDim.x):
    counts[b] = 0
  cuda.syncthreads()
  for i in range(cuda.grid(1), n, cuda.gridsize(1)):
    b = x[i]
    if b >= 0 and b < bins:
      cuda.atomic.add(counts, b, 1)
  cuda.syncthreads()
  for b in range(cuda.threadIdx.x, bins, cuda.blockDim.x):
    if counts[b] > 0:
      cuda.atomic.add(out, b, counts[b])
