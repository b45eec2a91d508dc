// row: -
// problem: vector_add
// on: both
// expect cpu: compile_error
// expect cuda: wrong_answer compile_error
// why: A gibibyte of global variables.
__device__ char big[1ull << 30];
__global__ void k(const float* x, const float* y, float* out, int n) {
  out[0] = big[n];
}
