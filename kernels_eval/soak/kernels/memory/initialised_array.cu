// row: -
// problem: vector_add
// on: both
// expect cpu: compile_error
// expect cuda: compile_error timeout wrong_answer
// why: Eight gibibytes of initialised data.
__device__ char big[1ull << 33] = {1};
__global__ void k(const float* x, const float* y, float* out, int n) {
  out[0] = big[n];
}
