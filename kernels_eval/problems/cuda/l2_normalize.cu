// The row is read once, into dynamic shared memory; the threads' sums follow
// behind it.
// launch: l2_normalize grid=(rows) block=(128) smem=4*(cols + 128)
__global__ void l2_normalize(const float* __restrict__ x,
                             float* __restrict__ out, float epsilon, int rows,
                             int cols) {
  extern __shared__ float shared[];
  float* row = shared;
  float* partial = shared + cols;
  const float* from = x + blockIdx.x * cols;
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    float v = from[c];
    row[c] = v;
    sum += v * v;
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  float scale = rsqrtf(partial[0] + epsilon);
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    out[blockIdx.x * cols + c] = row[c] * scale;
  }
}
