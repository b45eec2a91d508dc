// row: -
// problem: vector_add
// on: both
// expect cpu: runtime_error integrity_violation
// expect cuda: wrong_answer
// why: Lets printf write through a pointer that is none.
__global__ void k(const float* x, const float* y, float* out, int n) {
  printf("%d%n", 1, (int*)8);
}
