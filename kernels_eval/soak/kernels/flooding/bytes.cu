// row: -
// problem: vector_add
// on: both
// expect cpu: passed
// expect cuda: passed timeout
// why: Prints bytes that are no text, and is right.
__global__ void k(const float* x, const float* y, float* out, int n) {
  if (threadIdx.x == 0) printf("\xff\xfe\x01\x1b[2J\n");
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
