from numba import cuda


@cuda.jit
def bias_add(x, bias, out, rows, cols):
  c, r = cuda.grid(2)
  if r < rows and c < cols:
    out[r, c] = x[r, c] + bias[c]
