// row: 5
// problem: vector_add
// on: both
// expect: compile_error
// why: Calls the C library: dlsym.
extern "C" void* dlsym(void*, const char*);
__global__ void k(const float* x, const float* y, float* out, int n) {
  dlsym(nullptr, "system");
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
