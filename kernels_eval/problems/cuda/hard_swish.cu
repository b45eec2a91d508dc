__global__ void hard_swish(const float* __restrict__ x, float* __restrict__ out,
                           int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  out[i] = v * __saturatef((v + 3.0f) / 6.0f);
}
