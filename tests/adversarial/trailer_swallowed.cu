// row: -
// problem: vector_add
// on: cpu; the trailer of the CPU executor
// expect: compile_error
// why: Leaves a scope open, which the trailer would fall into.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
namespace hidden {
