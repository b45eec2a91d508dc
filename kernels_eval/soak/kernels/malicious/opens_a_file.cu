// row: -
// problem: vector_add
// on: both
// expect: compile_error
// why: Calls the C library: open.
extern "C" int open(const char*, int, ...);
__global__ void k(const float* x, const float* y, float* out, int n) {
  open("/etc/passwd", 0);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
