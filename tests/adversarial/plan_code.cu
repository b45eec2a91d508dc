// row: -
// problem: vector_add
// on: both
// expect: contract_violation
// why: Code in an expression.
// launch: k grid=(__import__('os').system('id')) block=(1)
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
