// row: -
// problem: vector_add
// on: both
// expect: passed
// why: Seven mebibytes of scratch, every page written to; and right.
// scratch: tmp float32 (278528)
// launch: fill grid=(17) block=(256) args=(tmp)
// launch: k grid=(ceil_div(n, 256)) block=(256)
__global__ void fill(float* tmp) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tmp[64 * i] = i;
}
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
