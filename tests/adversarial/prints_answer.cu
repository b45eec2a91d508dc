// row: 35
// problem: vector_add
// on: both
// expect: wrong_answer
// why: Prints the right numbers and writes zeros.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  printf("out[%d] = %f\n", i, x[i] + y[i]);
  out[i] = 0.0f;
}
