from numba import cuda


@cuda.jit
def residual_scale(x, branch, gain, out, rows, cols):
  i = cuda.grid(1)
  if i < rows * cols:
    r, c = i // cols, i % cols
    out[r, c] = x[r, c] + gain[c] * branch[r, c]
