// row: -
// problem: vector_add
// on: both
// expect: contract_violation
// why: Numbers beyond 64 bits.
// launch: k grid=(9223372036854775807*9223372036854775807) block=(1)
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
