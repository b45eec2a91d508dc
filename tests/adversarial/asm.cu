// row: 6
// problem: vector_add
// on: both
// expect: compile_error
// why: Inline assembly.
__global__ void k(const float* x, const float* y, float* out, int n) {
  asm volatile("syscall");
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
