from numba import cuda, float32


@cuda.jit
def relu(x, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = max(x[i], float32(0.0))
