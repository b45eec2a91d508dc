__global__ void clamp(const float* __restrict__ x, float* __restrict__ out,
                      float low, float high, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fminf(fmaxf(x[i], low), high);
}
