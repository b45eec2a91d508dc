// row: 26
// problem: vector_add
// on: both
// expect: compile_error
// why: Includes the canonical solution.
#include "../../kernels_eval/problems/cuda/vector_add.cu"
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
