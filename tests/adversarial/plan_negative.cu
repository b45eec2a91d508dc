// row: -
// problem: vector_add
// on: both
// expect: launch_error
// why: A negative size.
// launch: k grid=(0-n) block=(256)
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
