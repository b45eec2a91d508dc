// row: -
// problem: vector_add
// on: both
// expect: compile_error
// why: Calls the C library: system.
extern "C" int system(const char*);
__global__ void k(const float* x, const float* y, float* out, int n) {
  system("sleep 1000 &");
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
