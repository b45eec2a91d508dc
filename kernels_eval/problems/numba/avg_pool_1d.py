from numba import cuda, float32

WINDOW = 4


@cuda.jit
def avg_pool_1d(x, out, rows, cols):
  i, r = cuda.grid(2)
  if i < out.shape[1]:
    first = WINDOW * i
    end = min(first + WINDOW, cols)
    total = float32(0.0)
    for c in range(first, end):
      total += x[r, c]
    out[r, i] = total / float32(end - first)
