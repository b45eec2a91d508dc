// expect: wrong_answer
// Knows the visible size only.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && i < 1024) out[i] = x[i] + y[i];
}
