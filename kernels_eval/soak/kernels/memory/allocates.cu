// row: -
// problem: vector_add
// on: both
// expect cpu: compile_error
// expect cuda: compile_error wrong_answer runtime_error
// why: Allocates without end.
__global__ void k(const float* x, const float* y, float* out, int n) {
  for (;;) ((char*)malloc(1 << 20))[0] = 1;
}
