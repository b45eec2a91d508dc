// expect: timeout
// A loop without end or memory access.
__global__ void k(const float* x, const float* y, float* out, int n) {
  while (true) {
  }
}
