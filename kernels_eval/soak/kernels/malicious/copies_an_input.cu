// row: -
// problem: vector_add
// on: both
// expect: wrong_answer
// why: A copy of an input for an answer.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i];
}
