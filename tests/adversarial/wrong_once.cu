// row: 31 32
// problem: vector_add
// on: both
// expect: wrong_answer
// why: One element of the last case is wrong, by one in a hundred.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (x[i] + y[i]) * (i == 4098 ? 1.01f : 1.0f);
}
