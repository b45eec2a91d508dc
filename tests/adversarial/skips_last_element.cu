// row: 31
// problem: vector_add
// on: both
// expect: wrong_answer
// why: All elements but the last.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n - 1) out[i] = x[i] + y[i];
}
