// row: 5
// problem: vector_add
// on: both
// expect: compile_error
// why: Makes code writable, to put a jump into a function of the timer.
extern "C" int mprotect(void* address, unsigned long bytes, int protection);
__global__ void k(const float* x, const float* y, float* out, int n) {
  mprotect((void*)((size_t)&mprotect & ~4095ull), 4096, 7);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
