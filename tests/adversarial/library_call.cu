// row: 24
// problem: vector_add
// on: both
// expect: compile_error
// why: Lets a library do the work.
#include <cublas_v2.h>
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

void run(cublasHandle_t handle, const float* x, float* y, int n) {
  float one = 1.0f;
  cublasSaxpy(handle, n, &one, x, 1, y, 1);
}
