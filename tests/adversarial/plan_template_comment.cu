// row: -
// problem: vector_add
// on: both
// expect: contract_violation
// why: A comment in template arguments.
// launch: k<1//> grid=(1) block=(1)
template <int N>
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
