// row: -
// problem: vector_add
// on: both
// expect cpu: runtime_error
// expect cuda: runtime_error timeout
// why: Calls a null pointer.
__global__ void k(const float* x, const float* y, float* out, int n) {
  void (*volatile f)() = nullptr;
  f();
}
