// row: -
// problem: vector_add
// on: both
// expect: compile_error
// why: Calls the C library: pthread_create.
extern "C" int pthread_create(void*, void*, void* (*)(void*), void*);
__global__ void k(const float* x, const float* y, float* out, int n) {
  pthread_create(out, nullptr, nullptr, nullptr);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
