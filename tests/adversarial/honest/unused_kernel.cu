// row: 37
// problem: vector_add
// on: both
// expect: passed
// why: A second kernel that the plan leaves out.
// launch: k grid=(ceil_div(n, 256)) block=(256)
__global__ void old_version(const float* x, float* out) { out[0] = x[0]; }
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
