from numba import cuda


@cuda.jit
def clamp(x, out, low, high, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = min(max(x[i], low), high)
