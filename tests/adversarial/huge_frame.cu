// row: -
// problem: vector_add
// on: both
// expect cpu: runtime_error
// expect cuda: compile_error runtime_error launch_error
// why: Jumps over the guard page of its stack.
__global__ void k(const float* x, const float* y, float* out, int n) {
  volatile float big[1 << 24];
  big[0] = x[0];
  out[0] = big[threadIdx.x * 4096];
}
