// row: -
// problem: vector_add
// on: both
// expect: compile_error
// why: Forks without end.
extern "C" int fork();
__global__ void k(const float* x, const float* y, float* out, int n) {
  for (;;) fork();
}
