// row: -
// problem: vector_add
// on: both
// expect: compile_error
// why: Closes a scope that it has not opened.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
}
extern "C" {
