from numba import cuda, float32
from numba.cuda import libdevice


# The row is read once, into dynamic shared memory; the threads' sums follow
# behind it.
# launch: l2_normalize grid=(rows) block=(128) smem=4*(cols + 128)
@cuda.jit
def l2_normalize(x, out, epsilon, rows, cols):
  shared = cuda.shared.array(0, float32)
  row = shared[:cols]
  partial = shared[cols:]
  r, t = cuda.blockIdx.x, cuda.threadIdx.x
  total = float32(0.0)
  for c in range(t, cols, cuda.blockDim.x):
    v = x[r, c]
    row[c] = v
    total += v * v
  partial[t] = total
  cuda.syncthreads()
  half = cuda.blockDim.x // 2
  while half > 0:
    if t < half:
      partial[t] += partial[t + half]
    cuda.syncthreads()
    half //= 2
  scale = libdevice.rsqrtf(partial[0] + epsilon)
  for c in range(t, cols, cuda.blockDim.x):
    out[r, c] = row[c] * scale
