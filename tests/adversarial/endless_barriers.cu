// row: -
// problem: vector_add
// on: both
// expect: timeout
// why: Barriers without end.
__global__ void k(const float* x, const float* y, float* out, int n) {
  for (;;) __syncthreads();
}
