// A pair is one float2: rows have 2 * pairs columns, so every pair is aligned.
__global__ void rotary_embedding(const float* __restrict__ x,
                                 const float* __restrict__ angle,
                                 float* __restrict__ out, int tokens,
                                 int pairs) {
  const float2* from = reinterpret_cast<const float2*>(x) + blockIdx.x * pairs;
  float2* to = reinterpret_cast<float2*>(out) + blockIdx.x * pairs;
  for (int j = threadIdx.x; j < pairs; j += blockDim.x) {
    float s, c;
    sincosf(angle[blockIdx.x * pairs + j], &s, &c);
    float2 v = from[j];
    to[j] = make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
  }
}
