__device__ __forceinline__ float gelu_tanh(float v) {
  const float kSqrt2OverPi = 0.7978845608f;
  float inner = kSqrt2OverPi * (v + 0.044715f * v * v * v);
  return 0.5f * v * (1.0f + tanhf(inner));
}

__global__ void gelu(const float* __restrict__ x, float* __restrict__ out,
                     int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = gelu_tanh(x[i]);
}
