// row: -
// problem: vector_add
// on: both
// expect cpu: compile_error
// expect cuda: compile_error wrong_answer
// why: A megabyte of shared memory.
__global__ void k(const float* x, const float* y, float* out, int n) {
  __shared__ float s[1 << 18];
  s[0] = x[0];
  out[0] = s[0];
}
