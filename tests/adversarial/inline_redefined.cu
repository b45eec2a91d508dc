// row: 36
// problem: vector_add
// on: cpu; a word of g++
// expect: contract_violation
// why: Takes functions out of the checks that need them inlined.
#define __always_inline__ noinline
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
