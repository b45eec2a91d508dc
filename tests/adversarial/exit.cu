// row: 6
// problem: vector_add
// on: both
// expect: compile_error
// why: Calls the C library: exit.
extern "C" void exit(int);
__global__ void k(const float* x, const float* y, float* out, int n) {
  exit(0);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
