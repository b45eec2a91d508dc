// row: 15 16
// problem: vector_add
// on: both
// expect: launch_error
// why: More shared memory than any device has: nothing would run.
// launch: k grid=(ceil_div(n, 256)) block=(256) smem=300*1024
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
