// launch: row_norm grid=(rows) block=(128) smem=4*128
__global__ void row_norm(const float* __restrict__ x, float* __restrict__ out,
                         int rows, int cols) {
  extern __shared__ float partial[];
  const float* row = x + blockIdx.x * cols;
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += row[c] * row[c];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sqrtf(partial[0]);
}
