constexpr int kThreads = 256;

// Every thread of the block gets the sum. The first barrier keeps a second call
// from writing while a slow thread still reads the first one's result.
__device__ float block_sum(float v, float* buffer) {
  __syncthreads();
  buffer[threadIdx.x] = v;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half >>= 1) {
    if (threadIdx.x < half) buffer[threadIdx.x] += buffer[threadIdx.x + half];
    __syncthreads();
  }
  return buffer[0];
}

// Two passes: squares of differences cannot cancel as sums of squares do.
__global__ void __launch_bounds__(kThreads)
    row_variance(const float* __restrict__ x, float* __restrict__ out, int rows,
                 int cols) {
  __shared__ float buffer[kThreads];
  const float* row = x + blockIdx.x * cols;
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += kThreads) sum += row[c];
  float mean = block_sum(sum, buffer) / cols;
  float squares = 0.0f;
  for (int c = threadIdx.x; c < cols; c += kThreads) {
    float difference = row[c] - mean;
    squares += difference * difference;
  }
  squares = block_sum(squares, buffer);
  if (threadIdx.x == 0) out[blockIdx.x] = squares / cols;
}
