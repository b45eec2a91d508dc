__global__ void select(const int* __restrict__ mask,
                       const float* __restrict__ x, const float* __restrict__ y,
                       float* __restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = mask[i] != 0 ? x[i] : y[i];
}
