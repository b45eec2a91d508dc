// row: -
// problem: vector_add
// on: both
// expect cpu: timeout
// expect cuda: timeout wrong_answer
// why: A loop without end or memory access.
__global__ void k(const float* x, const float* y, float* out, int n) {
  while (true) {
  }
}
