// row: 2
// problem: vector_add
// on: both
// expect: compile_error
// why: Calls the C library: fork.
extern "C" int fork();
__global__ void k(const float* x, const float* y, float* out, int n) {
  fork();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
