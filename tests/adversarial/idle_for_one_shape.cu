// row: 11 22
// problem: vector_add
// on: both
// expect: wrong_answer
// why: No time at all for one of the shapes.
__global__ void k(const float* x, const float* y, float* out, int n) {
  if (n > 4000) return;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
