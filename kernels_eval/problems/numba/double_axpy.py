from numba import cuda, float64


@cuda.jit
def double_axpy(x, y, out, alpha, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = float64(alpha) * x[i] + y[i]
