// row: -
// problem: vector_add
// on: both
// expect: runtime_error
// why: A read a terabyte behind the buffer.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[(size_t(1) << 38) + i];
}
