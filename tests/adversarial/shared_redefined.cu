// row: -
// problem: vector_add
// on: both
// expect cpu: contract_violation
// expect cuda: contract_violation wrong_answer
// why: Takes shared memory out of the checks.
#define __shared__ static
__global__ void k(const float* x, const float* y, float* out, int n) {
  __shared__ float s;
  s = x[0];
  out[0] = s;
}
