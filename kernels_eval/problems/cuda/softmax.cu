// One block per row, three passes over it: maximum, sum, result.
__global__ void softmax(const float* __restrict__ x, float* __restrict__ out,
                        int rows, int cols) {
  __shared__ float buffer[256];
  const float* row = x + blockIdx.x * cols;
  float* result = out + blockIdx.x * cols;
  int t = threadIdx.x;

  float highest = -INFINITY;
  for (int c = t; c < cols; c += blockDim.x) highest = fmaxf(highest, row[c]);
  buffer[t] = highest;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) buffer[t] = fmaxf(buffer[t], buffer[t + half]);
    __syncthreads();
  }
  highest = buffer[0];
  __syncthreads();

  float sum = 0.0f;
  for (int c = t; c < cols; c += blockDim.x) sum += expf(row[c] - highest);
  buffer[t] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) buffer[t] += buffer[t + half];
    __syncthreads();
  }
  float scale = 1.0f / buffer[0];
  for (int c = t; c < cols; c += blockDim.x) {
    result[c] = expf(row[c] - highest) * scale;
  }
}
