from numba import cuda, float32


# One thread per result, straight from global memory: the matrices of a batch
# are small.
@cuda.jit
def batched_matmul(a, b, out, batch, m, n, k):
  j, i, s = cuda.grid(3)
  if i < m and j < n:
    total = float32(0.0)
    for t in range(k):
      total += a[s, i, t] * b[s, t, j]
    out[s, i, j] = total
