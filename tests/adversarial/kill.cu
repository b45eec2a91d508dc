// row: -
// problem: vector_add
// on: both
// expect: compile_error
// why: Calls the C library: kill.
extern "C" int kill(int, int);
__global__ void k(const float* x, const float* y, float* out, int n) {
  kill(1, 9);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
