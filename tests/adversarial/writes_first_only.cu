// row: 29
// problem: vector_add
// on: both
// expect: wrong_answer
// why: A result of one element.
__global__ void k(const float* x, const float* y, float* out, int n) {
  if (blockIdx.x + threadIdx.x == 0) out[0] = x[0] + y[0];
}
