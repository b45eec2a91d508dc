from numba import cuda, float32


# The order in which equal indices arrive is open, so rows are added by atomics,
# after a launch that sets all bins to 0.
# launch: clear grid=(bins) block=(64) args=(out, cols)
# launch: add grid=(n) block=(64) args=(x, index, out, cols)
@cuda.jit
def clear(out, cols):
  for c in range(cuda.threadIdx.x, cols, cuda.blockDim.x):
    out[cuda.blockIdx.x, c] = float32(0.0)


@cuda.jit
def add(x, index, out, cols):
  i = cuda.blockIdx.x
  for c in range(cuda.threadIdx.x, cols, cuda.blockDim.x):
    cuda.atomic.add(out, (index[i], c), x[i, c])
