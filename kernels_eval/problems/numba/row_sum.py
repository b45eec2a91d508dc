from numba import cuda, float32

THREADS = 256


# One block per row; a tree in shared memory adds up the threads' sums.
@cuda.jit
def row_sum(x, out, rows, cols):
  partial = cuda.shared.array(THREADS, float32)
  r, t = cuda.blockIdx.x, cuda.threadIdx.x
  total = float32(0.0)
  for c in range(t, cols, THREADS):
    total += x[r, c]
  partial[t] = total
  cuda.syncthreads()
  half = THREADS // 2
  while half > 0:
    if t < half:
      partial[t] += partial[t + half]
    cuda.syncthreads()
    half //= 2
  if t == 0:
    out[r] = partial[0]
