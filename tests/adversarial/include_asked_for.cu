// row: 26
// problem: vector_add
// on: both
// expect: passed compile_error
// why: Asks whether files exist; it would be wrong if it saw one.
#if __has_include("/etc/passwd") || __has_include("/etc/hostname")
#define SEEN 1.0f
#else
#define SEEN 0.0f
#endif
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i] + SEEN;
}
