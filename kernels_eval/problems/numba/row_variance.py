from numba import cuda, float32

THREADS = 256


# Every thread of the block gets the sum. The first barrier keeps a second call
# from writing while a slow thread still reads the first one's result.
@cuda.jit(device=True)
def block_sum(v, buffer):
  t = cuda.threadIdx.x
  cuda.syncthreads()
  buffer[t] = v
  cuda.syncthreads()
  half = cuda.blockDim.x // 2
  while half > 0:
    if t < half:
      buffer[t] += buffer[t + half]
    cuda.syncthreads()
    half //= 2
  return buffer[0]


# Two passes: squares of differences cannot cancel as sums of squares do.
@cuda.jit
def row_variance(x, out, rows, cols):
  buffer = cuda.shared.array(THREADS, float32)
  r, t = cuda.blockIdx.x, cuda.threadIdx.x
  total = float32(0.0)
  for c in range(t, cols, THREADS):
    total += x[r, c]
  mean = block_sum(total, buffer) / float32(cols)
  squares = float32(0.0)
  for c in range(t, cols, THREADS):
    difference = x[r, c] - mean
    squares += difference * difference
  squares = block_sum(squares, buffer)
  if t == 0:
    out[r] = squares / float32(cols)
