// row: 36
// problem: vector_add
// on: cpu; a mark for g++
// expect: contract_violation
// why: Defines away the word by which code of the host is found.
#define __deprecated__(x) unused
float helper(float v) { return v; }
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = helper(x[i]) + y[i];
}
