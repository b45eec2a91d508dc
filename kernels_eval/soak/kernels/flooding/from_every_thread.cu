// row: -
// problem: vector_add
// on: both
// expect cpu: passed
// expect cuda: passed timeout
// why: Every thread prints.
__global__ void k(const float* x, const float* y, float* out, int n) {
  for (int j = 0; j < 20; j++) printf("thread %d of %d\n", threadIdx.x, n);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
