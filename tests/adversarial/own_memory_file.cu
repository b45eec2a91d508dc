// row: 5 6
// problem: vector_add
// on: both
// expect: compile_error
// why: Writes to its own process through a file.
extern "C" int open(const char* path, int flags, ...);
extern "C" long pwrite(int, const void*, unsigned long, long);
__global__ void k(const float* x, const float* y, float* out, int n) {
  pwrite(open("/proc/self/mem", 2), "", 1, (long)&open);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
