from numba import cuda


# A grid-stride loop: right for any size of the grid.
@cuda.jit
def axpy(x, y, out, alpha, n):
  for i in range(cuda.grid(1), n, cuda.gridsize(1)):
    out[i] = alpha * x[i] + y[i]
