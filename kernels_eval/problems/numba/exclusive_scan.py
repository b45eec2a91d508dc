from numba import cuda, int32

THREADS = 256
WARPS = THREADS // 32


# Three launches: the sum of each block, the scan of those sums by one thread
# (they are few), then the scan inside of each block on top of its offset.
# scratch: sums int32 (ceil_div(n, 256))
# launch: reduce grid=(ceil_div(n, 256)) block=(256) args=(count, sums, n)
# launch: scan_sums grid=(1) block=(1) args=(sums)
# launch: scan grid=(ceil_div(n, 256)) block=(256) args=(count, sums, out, n)
@cuda.jit
def reduce(count, sums, n):
  total = cuda.shared.array(1, int32)
  if cuda.threadIdx.x == 0:
    total[0] = 0
  cuda.syncthreads()
  i = cuda.grid(1)
  if i < n:
    cuda.atomic.add(total, 0, count[i])
  cuda.syncthreads()
  if cuda.threadIdx.x == 0:
    sums[cuda.blockIdx.x] = total[0]


@cuda.jit
def scan_sums(sums):
  running = int32(0)
  for b in range(sums.size):
    of_block = sums[b]
    sums[b] = running
    running += of_block


@cuda.jit
def scan(count, sums, out, n):
  of_warp = cuda.shared.array(WARPS, int32)
  i, t = cuda.grid(1), cuda.threadIdx.x
  lane, warp = t % 32, t // 32
  own = count[i] if i < n else int32(0)
  inclusive = own
  step = 1
  while step < 32:
    before = cuda.shfl_up_sync(0xFFFFFFFF, inclusive, step)
    if lane >= step:
      inclusive += before
    step *= 2
  if lane == 31:
    of_warp[warp] = inclusive
  cuda.syncthreads()
  offset = sums[cuda.blockIdx.x]
  for w in range(warp):
    offset += of_warp[w]
  if i < n:
    out[i] = offset + inclusive - own
