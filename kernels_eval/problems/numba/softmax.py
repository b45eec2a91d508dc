import math

from numba import cuda, float32

THREADS = 256


# One block per row, three passes over it: maximum, sum, result.
@cuda.jit
def softmax(x, out, rows, cols):
  buffer = cuda.shared.array(THREADS, float32)
  r, t = cuda.blockIdx.x, cuda.threadIdx.x
  highest = float32(-math.inf)
  for c in range(t, cols, THREADS):
    highest = max(highest, x[r, c])
  buffer[t] = highest
  cuda.syncthreads()
  half = THREADS // 2
  while half > 0:
    if t < half:
      buffer[t] = max(buffer[t], buffer[t + half])
    cuda.syncthreads()
    half //= 2
  highest = buffer[0]
  cuda.syncthreads()

  total = float32(0.0)
  for c in range(t, cols, THREADS):
    total += math.exp(x[r, c] - highest)
  buffer[t] = total
  cuda.syncthreads()
  half = THREADS // 2
  while half > 0:
    if t < half:
      buffer[t] += buffer[t + half]
    cuda.syncthreads()
    half //= 2
  scale = float32(1.0) / buffer[0]
  for c in range(t, cols, THREADS):
    out[r, c] = math.exp(x[r, c] - highest) * scale
