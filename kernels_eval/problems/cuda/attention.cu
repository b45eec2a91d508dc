// One block per query; the scores of all keys lie in dynamic shared memory.
// launch: attention grid=(queries) block=(64) smem=4*keys
__global__ void attention(const float* __restrict__ q,
                          const float* __restrict__ k,
                          const float* __restrict__ v, float* __restrict__ out,
                          int queries, int keys, int dim) {
  extern __shared__ float score[];
  __shared__ float buffer[64];
  const float* query = q + blockIdx.x * dim;
  int t = threadIdx.x;
  float scale = rsqrtf(static_cast<float>(dim));

  float highest = -INFINITY;
  for (int j = t; j < keys; j += blockDim.x) {
    float dot = 0.0f;
    for (int d = 0; d < dim; d++) dot = fmaf(query[d], k[j * dim + d], dot);
    score[j] = dot * scale;
    highest = fmaxf(highest, score[j]);
  }
  buffer[t] = highest;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) buffer[t] = fmaxf(buffer[t], buffer[t + half]);
    __syncthreads();
  }
  highest = buffer[0];
  __syncthreads();

  float sum = 0.0f;
  for (int j = t; j < keys; j += blockDim.x) {
    score[j] = expf(score[j] - highest);
    sum += score[j];
  }
  buffer[t] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) buffer[t] += buffer[t + half];
    __syncthreads();
  }
  float inverse = 1.0f / buffer[0];

  for (int d = t; d < dim; d += blockDim.x) {
    float mean = 0.0f;
    for (int j = 0; j < keys; j++) mean = fmaf(score[j], v[j * dim + d], mean);
    out[blockIdx.x * dim + d] = mean * inverse;
  }
}
