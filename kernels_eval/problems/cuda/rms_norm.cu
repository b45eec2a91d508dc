// launch: rms_norm<128> grid=(rows) block=(128)
template <int kThreads>
__device__ float block_sum(float v) {
  __shared__ float of_warp[kThreads / 32];
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    v += __shfl_down_sync(0xffffffff, v, offset);
  }
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;
  __syncthreads();
  float sum = 0.0f;
#pragma unroll
  for (int w = 0; w < kThreads / 32; w++) sum += of_warp[w];
  return sum;
}

template <int kThreads>
__global__ void rms_norm(const float* __restrict__ x,
                         const float* __restrict__ gamma,
                         float* __restrict__ out, int rows, int cols) {
  const float* row = x + blockIdx.x * cols;
  float squares = 0.0f;
  for (int c = threadIdx.x; c < cols; c += kThreads) squares += row[c] * row[c];
  squares = block_sum<kThreads>(squares);
  float scale = rsqrtf(squares / cols + 1e-6f);
  for (int c = threadIdx.x; c < cols; c += kThreads) {
    out[blockIdx.x * cols + c] = row[c] * scale * gamma[c];
  }
}
