// row: -
// problem: vector_add
// on: both
// expect: launch_error
// why: Negative shared memory.
// launch: k grid=(1) block=(1) smem=0-4
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
