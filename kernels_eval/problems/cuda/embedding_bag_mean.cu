__global__ void embedding_bag_mean(const float* __restrict__ table,
                                   const long long* __restrict__ index,
                                   float* __restrict__ out, int bags,
                                   int length, int entries, int cols) {
  const long long* bag = index + blockIdx.x * length;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    float sum = 0.0f;
    for (int j = 0; j < length; j++) sum += table[bag[j] * cols + c];
    out[blockIdx.x * cols + c] = sum / length;
  }
}
