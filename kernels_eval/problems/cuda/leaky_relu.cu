__global__ void leaky_relu(const float* x, float* out, float slope, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  out[i] = v > 0.0f ? v : slope * v;
}
