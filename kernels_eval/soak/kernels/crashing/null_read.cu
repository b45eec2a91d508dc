// row: -
// problem: vector_add
// on: both
// expect: runtime_error
// why: A null pointer, read.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float* volatile p = nullptr;
  if (i < n) out[i] = p[0];
}
