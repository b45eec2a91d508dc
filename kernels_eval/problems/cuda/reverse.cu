__global__ void reverse(const float* __restrict__ x, float* __restrict__ out,
                        int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[n - 1 - i] = x[i];
}
