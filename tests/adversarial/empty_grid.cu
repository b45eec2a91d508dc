// row: 29
// problem: vector_add
// on: both
// expect: launch_error
// why: No blocks at all.
// launch: k grid=(0) block=(256)
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
