// row: 36
// problem: vector_add
// on: both
// expect: compile_error
// why: Inline assembly put together.
#define JOIN(a, b) a##b
__global__ void k(const float* x, const float* y, float* out, int n) {
  JOIN(__as, m__)("syscall");
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
