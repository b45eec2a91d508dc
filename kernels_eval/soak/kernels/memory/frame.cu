// row: -
// problem: vector_add
// on: both
// expect cpu: runtime_error
// expect cuda: runtime_error compile_error launch_error wrong_answer
// why: A frame that jumps over the guard page.
__global__ void k(const float* x, const float* y, float* out, int n) {
  volatile float big[1 << 24];
  big[0] = x[0];
  out[0] = big[threadIdx.x * 4096];
}
