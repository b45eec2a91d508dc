// row: 22
// problem: vector_add
// on: both
// expect cpu: runtime_error
// expect cuda: runtime_error integrity_violation
// why: Right for multiples of the block only: writes past the end.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = x[i] + y[i];
}
