from numba import cuda, float32

THREADS = 256
WARPS = THREADS // 32


@cuda.jit(device=True)
def warp_sum(v):
  offset = 16
  while offset > 0:
    v += cuda.shfl_xor_sync(0xFFFFFFFF, v, offset)
    offset //= 2
  return v


# One block per row: shuffles inside of each warp, then one number per warp.
@cuda.jit
def row_mean(x, out, rows, cols):
  of_warp = cuda.shared.array(WARPS, float32)
  r, t = cuda.blockIdx.x, cuda.threadIdx.x
  lane, warp = t % 32, t // 32
  total = float32(0.0)
  for c in range(t, cols, THREADS):
    total += x[r, c]
  total = warp_sum(total)
  if lane == 0:
    of_warp[warp] = total
  cuda.syncthreads()
  if warp == 0:
    total = of_warp[lane] if lane < WARPS else float32(0.0)
    total = warp_sum(total)
    if lane == 0:
      out[r] = total / float32(cols)
