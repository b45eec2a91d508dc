from numba import cuda


@cuda.jit
def multiply_add(x, y, z, out, n):
  for i in range(cuda.grid(1), n, cuda.gridsize(1)):
    out[i] = cuda.fma(x[i], y[i], z[i])
