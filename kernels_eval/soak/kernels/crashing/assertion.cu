// row: -
// problem: vector_add
// on: both
// expect: runtime_error
// why: An assertion that fails.
__global__ void k(const float* x, const float* y, float* out, int n) {
  assert(n < 0);
}
