// row: -
// problem: vector_add
// on: both
// expect cpu: runtime_error
// expect cuda: runtime_error timeout
// why: Prints, then ends by a trap.
__global__ void k(const float* x, const float* y, float* out, int n) {
  for (int i = 0; i < 500; i++) printf("%0200d\n", i);
  __trap();
}
