// One warp per position, with an online softmax: no score is stored. Each lane
// holds the dimensions d = lane, lane + 32, ... of the result so far.
// launch: causal_attention grid=(n) block=(32)
constexpr int kMaxEach = 4;  // dim up to 128

__global__ void causal_attention(const float* __restrict__ q,
                                 const float* __restrict__ k,
                                 const float* __restrict__ v,
                                 float* __restrict__ out, int n, int dim) {
  int i = blockIdx.x, lane = threadIdx.x;
  float scale = 1.0f / sqrtf(static_cast<float>(dim));
  float highest = -INFINITY, sum = 0.0f;
  float mean[kMaxEach] = {};
  for (int j = 0; j <= i; j++) {
    float dot = 0.0f;
    for (int d = lane; d < dim; d += 32) dot += q[i * dim + d] * k[j * dim + d];
    for (int offset = 16; offset > 0; offset /= 2) {
      dot += __shfl_xor_sync(0xffffffff, dot, offset);
    }
    float score = dot * scale;
    float top = fmaxf(highest, score);
    float keep = expf(highest - top), weight = expf(score - top);
    highest = top;
    sum = sum * keep + weight;
#pragma unroll
    for (int e = 0; e < kMaxEach; e++) {
      int d = lane + 32 * e;
      if (d < dim) mean[e] = mean[e] * keep + weight * v[j * dim + d];
    }
  }
#pragma unroll
  for (int e = 0; e < kMaxEach; e++) {
    int d = lane + 32 * e;
    if (d < dim) out[i * dim + d] = mean[e] / sum;
  }
}
