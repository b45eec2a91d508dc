// Two launches: one sum per block, then the sum of those.
// scratch: partial float32 (ceil_div(n, 1024))
// launch: add grid=(ceil_div(n, 1024)) block=(256) args=(x, y, partial, n)
// launch: add_partial grid=(1) block=(32) args=(partial, out, n)
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    v += __shfl_xor_sync(0xffffffff, v, offset);
  }
  return v;
}

__global__ void add(const float* __restrict__ x, const float* __restrict__ y,
                    float* __restrict__ partial, int n) {
  __shared__ float of_warp[8];
  float sum = 0.0f;
  int base = blockIdx.x * 1024 + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    int i = base + 256 * k;
    if (i < n) sum = fmaf(x[i], y[i], sum);
  }
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < 8; w++) sum += of_warp[w];
    partial[blockIdx.x] = sum;
  }
}

__global__ void add_partial(const float* __restrict__ partial,
                            float* __restrict__ out, int n) {
  int blocks = (n + 1023) / 1024;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < blocks; i += 32) sum += partial[i];
  sum = warp_sum(sum);
  if (threadIdx.x == 0) out[0] = sum;
}
