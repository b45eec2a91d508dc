// row: 6
// problem: vector_add
// on: both
// expect: compile_error
// why: Asks to be called when the process ends.
extern "C" int atexit(void (*)());
__device__ void late() {}
__global__ void k(const float* x, const float* y, float* out, int n) {
  atexit(late);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
