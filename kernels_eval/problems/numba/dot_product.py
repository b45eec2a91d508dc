from numba import cuda, float32

WARPS = 8


@cuda.jit(device=True)
def warp_sum(v):
  offset = 16
  while offset > 0:
    v += cuda.shfl_xor_sync(0xFFFFFFFF, v, offset)
    offset //= 2
  return v


# Two launches: one sum per block, then the sum of those.
# scratch: partial float32 (ceil_div(n, 1024))
# launch: add grid=(ceil_div(n, 1024)) block=(256) args=(x, y, partial, n)
# launch: add_partial grid=(1) block=(32) args=(partial, out)
@cuda.jit
def add(x, y, partial, n):
  of_warp = cuda.shared.array(WARPS, float32)
  t, block = cuda.threadIdx.x, cuda.blockIdx.x
  total = float32(0.0)
  for i in range(block * 1024 + t, min(n, (block + 1) * 1024), 256):
    total += x[i] * y[i]
  total = warp_sum(total)
  if t % 32 == 0:
    of_warp[t // 32] = total
  cuda.syncthreads()
  if t == 0:
    for w in range(1, WARPS):
      total += of_warp[w]
    partial[block] = total


@cuda.jit
def add_partial(partial, out):
  total = float32(0.0)
  for i in range(cuda.threadIdx.x, partial.size, 32):
    total += partial[i]
  total = warp_sum(total)
  if cuda.threadIdx.x == 0:
    out[0] = total
