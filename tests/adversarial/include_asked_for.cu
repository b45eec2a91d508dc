// row: 26
// problem: vector_add
// on: both
// expect: passed
// why: Asks whether files exist: it sees none.
#if __has_include("/etc/passwd") || __has_include("/etc/hostname")
#error files can be seen
#endif
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
