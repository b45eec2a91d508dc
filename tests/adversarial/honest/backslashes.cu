// row: 37
// problem: vector_add
// on: both
// expect: passed
// why: Comments and macros that go on in the next line.
#define SUM(a, b) \
  ((a) +          \
   (b))
// A path: C:\\kernels\\add
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = SUM(x[i], y[i]);
}
