// row: 19
// problem: vector_add
// on: both
// expect: wrong_answer
// why: Writes one number everywhere.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[0] + y[0];
}
