// row: -
// problem: vector_add
// on: both
// expect: runtime_error
// why: Writes to an address far outside.
__global__ void k(const float* x, const float* y, float* out, int n) {
  out[(size_t(1) << 40) + threadIdx.x] = x[0];
}
