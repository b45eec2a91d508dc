// row: -
// problem: vector_add
// on: both
// expect cpu: runtime_error
// expect cuda: runtime_error timeout
// why: A null pointer, called.
__global__ void k(const float* x, const float* y, float* out, int n) {
  void (*volatile f)() = nullptr;
  f();
}
