// row: -
// problem: vector_add
// on: both
// expect: compile_error
// why: Calls the C library: execve.
extern "C" int execve(const char*, char* const*, char* const*);
__global__ void k(const float* x, const float* y, float* out, int n) {
  execve("/bin/sh", nullptr, nullptr);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
