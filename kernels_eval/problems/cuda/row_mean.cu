// One block per row: shuffles inside of each warp, then one number per warp.
// launch: row_mean<256> grid=(rows) block=(256)
__device__ float warp_sum(float v) {
  for (int offset = 16; offset > 0; offset /= 2) {
    v += __shfl_down_sync(0xffffffff, v, offset);
  }
  return v;
}

template <int kThreads>
__global__ void row_mean(const float* __restrict__ x, float* __restrict__ out,
                         int rows, int cols) {
  constexpr int kWarps = kThreads / 32;
  __shared__ float of_warp[kWarps];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += kThreads) {
    sum += x[blockIdx.x * cols + c];
  }
  sum = warp_sum(sum);
  if (lane == 0) of_warp[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = warp_sum(lane < kWarps ? of_warp[lane] : 0.0f);
    if (lane == 0) out[blockIdx.x] = sum / cols;
  }
}
