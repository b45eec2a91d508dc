// row: 22
// problem: vector_add
// on: both
// expect: wrong_answer
// why: Knows the visible size only.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && i < 1024) out[i] = x[i] + y[i];
}
