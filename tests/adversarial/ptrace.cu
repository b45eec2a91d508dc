// row: 5
// problem: vector_add
// on: both
// expect: compile_error
// why: Calls the C library: ptrace.
extern "C" long ptrace(int, ...);
__global__ void k(const float* x, const float* y, float* out, int n) {
  ptrace(0, 0, 0, 0);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
