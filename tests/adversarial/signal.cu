// row: 5 6
// problem: vector_add
// on: both
// expect: compile_error
// why: Calls the C library: signal.
extern "C" void (*signal(int, void (*)(int)))(int);
__global__ void k(const float* x, const float* y, float* out, int n) {
  signal(11, nullptr);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
