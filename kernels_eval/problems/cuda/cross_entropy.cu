// launch: cross_entropy grid=(rows) block=(128)
constexpr int kWarps = 4;

__device__ float warp_max(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, offset));
  }
  return v;
}

__device__ float warp_sum(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    v += __shfl_xor_sync(0xffffffff, v, offset);
  }
  return v;
}

__global__ void cross_entropy(const float* __restrict__ logits,
                              const int* __restrict__ label,
                              float* __restrict__ out, int rows, int classes) {
  __shared__ float highest_of[kWarps], sum_of[kWarps];
  const float* row = logits + blockIdx.x * classes;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

  float highest = -INFINITY;
  for (int c = threadIdx.x; c < classes; c += blockDim.x) {
    highest = fmaxf(highest, row[c]);
  }
  highest = warp_max(highest);
  if (lane == 0) highest_of[warp] = highest;
  __syncthreads();
  for (int w = 0; w < kWarps; w++) highest = fmaxf(highest, highest_of[w]);

  float sum = 0.0f;
  for (int c = threadIdx.x; c < classes; c += blockDim.x) {
    sum += expf(row[c] - highest);
  }
  sum = warp_sum(sum);
  if (lane == 0) sum_of[warp] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float total = 0.0f;
    for (int w = 0; w < kWarps; w++) total += sum_of[w];
    out[blockIdx.x] = logf(total) + (highest - row[label[blockIdx.x]]);
  }
}
