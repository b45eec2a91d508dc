from numba import cuda, float32

WARPS = 4


@cuda.jit
def quantized_matvec(weight, scale, x, out, rows, cols):
  of_warp = cuda.shared.array(WARPS, float32)
  r, t = cuda.blockIdx.x, cuda.threadIdx.x
  total = float32(0.0)
  for c in range(t, cols, cuda.blockDim.x):
    total += float32(weight[r, c]) * x[c]
  offset = 16
  while offset > 0:
    total += cuda.shfl_down_sync(0xFFFFFFFF, total, offset)
    offset //= 2
  if t % 32 == 0:
    of_warp[t // 32] = total
  cuda.syncthreads()
  if t == 0:
    total = float32(0.0)
    for w in range(WARPS):
      total += of_warp[w]
    out[r] = scale[r] * total
