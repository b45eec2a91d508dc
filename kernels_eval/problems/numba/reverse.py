from numba import cuda


@cuda.jit
def reverse(x, out, n):
  i = cuda.grid(1)
  if i < n:
    out[n - 1 - i] = x[i]
