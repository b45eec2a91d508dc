from numba import cuda, float32


@cuda.jit
def leaky_relu(x, out, slope, n):
  i = cuda.grid(1)
  if i < n:
    v = x[i]
    out[i] = v if v > float32(0.0) else slope * v
