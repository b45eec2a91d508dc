// row: 22
// problem: vector_add
// on: both
// expect: wrong_answer
// why: Right for multiples of the block only: leaves out the rest.
// launch: k grid=(max(n // 256, 1)) block=(256)
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
