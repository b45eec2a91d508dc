// row: 36
// problem: vector_add
// on: both
// expect: compile_error
// why: Code of the host, called through a macro.
#define CALL helper
float helper(float v) { return v; }
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = CALL(x[i]) + y[i];
}
