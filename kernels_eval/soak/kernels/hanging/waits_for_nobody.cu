// row: -
// problem: vector_add
// on: both
// expect: timeout
// why: Waits for a value that nobody writes.
__global__ void k(const float* x, const float* y, float* out, int n) {
  if (threadIdx.x + blockIdx.x) return;
  volatile float* v = out;
  v[0] = 1.0f;
  while (v[0] != 2.0f) {
  }
}
