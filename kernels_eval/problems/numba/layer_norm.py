from numba import cuda, float32
from numba.cuda import libdevice

THREADS = 128


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


# launch: layer_norm grid=(rows) block=(128)
@cuda.jit
def layer_norm(x, gamma, beta, out, rows, cols):
  buffer = cuda.shared.array(THREADS, float32)
  r, t = cuda.blockIdx.x, cuda.threadIdx.x
  total = float32(0.0)
  for c in range(t, cols, THREADS):
    total += x[r, c]
  mean = block_sum(total, buffer) / float32(cols)
  squares = float32(0.0)
  for c in range(t, cols, THREADS):
    squares += (x[r, c] - mean) * (x[r, c] - mean)
  variance = block_sum(squares, buffer) / float32(cols)
  scale = libdevice.rsqrtf(variance + float32(1e-5))
  for c in range(t, cols, THREADS):
    out[r, c] = (x[r, c] - mean) * scale * gamma[c] + beta[c]
