// row: -
// problem: vector_add
// on: both
// expect: launch_error
// why: More dynamic shared memory than there is.
// launch: k grid=(1) block=(256) smem=16*1024*1024
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
