// row: 27 30
// problem: vector_add
// on: both
// expect: wrong_answer
// why: NaN as a joker.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = nanf("");
}
