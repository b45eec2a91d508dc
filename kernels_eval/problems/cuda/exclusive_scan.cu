// Three launches: the sum of each block, the scan of those sums by one thread
// (they are few), then the scan inside of each block on top of its offset.
// scratch: sums int32 (ceil_div(n, 256))
// launch: reduce grid=(ceil_div(n, 256)) block=(256) args=(count, sums, n)
// launch: scan_sums grid=(1) block=(1) args=(sums, n)
// launch: scan grid=(ceil_div(n, 256)) block=(256) args=(count, sums, out, n)
__global__ void reduce(const int* __restrict__ count, int* __restrict__ sums,
                       int n) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = __reduce_add_sync(0xffffffff, i < n ? count[i] : 0);
  if (threadIdx.x % 32 == 0) atomicAdd(&total, v);
  __syncthreads();
  if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

__global__ void scan_sums(int* sums, int n) {
  int running = 0;
  for (int b = 0; b < (n + 255) / 256; b++) {
    int sum = sums[b];
    sums[b] = running;
    running += sum;
  }
}

__global__ void scan(const int* __restrict__ count,
                     const int* __restrict__ sums, int* __restrict__ out,
                     int n) {
  __shared__ int of_warp[8];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int own = i < n ? count[i] : 0;
  int inclusive = own;
  for (int offset = 1; offset < 32; offset <<= 1) {
    int before = __shfl_up_sync(0xffffffff, inclusive, offset);
    if (lane >= offset) inclusive += before;
  }
  if (lane == 31) of_warp[warp] = inclusive;
  __syncthreads();
  int offset = sums[blockIdx.x];
  for (int w = 0; w < warp; w++) offset += of_warp[w];
  if (i < n) out[i] = offset + inclusive - own;
}
