// row: -
// problem: vector_add
// on: cpu; the trailer of the CPU executor
// expect: passed
// why: Ends with a backslash, which would join the trailer to it. No harm done.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
#define TAIL \