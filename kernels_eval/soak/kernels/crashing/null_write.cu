// row: -
// problem: vector_add
// on: both
// expect: runtime_error
// why: A null pointer, written.
__global__ void k(const float* x, const float* y, float* out, int n) {
  float* volatile p = nullptr;
  p[0] = x[0];
}
