from numba import cuda


# One block per row: its factor is loaded once.
@cuda.jit
def row_scale(x, scale, out, rows, cols):
  r = cuda.blockIdx.x
  factor = scale[r]
  for c in range(cuda.threadIdx.x, cols, cuda.blockDim.x):
    out[r, c] = factor * x[r, c]
