from numba import cuda


@cuda.jit
def select(mask, x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = cuda.selp(mask[i] != 0, x[i], y[i])
