// row: 6
// problem: vector_add
// on: both
// expect: compile_error
// why: Calls the C library: syscall.
extern "C" long syscall(long, ...);
__global__ void k(const float* x, const float* y, float* out, int n) {
  syscall(39);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
