// expect: compile_error
// Inline assembly put together.
#define JOIN(a, b) a##b
__global__ void k(const float* x, const float* y, float* out, int n) {
  JOIN(__as, m__)("syscall");
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
