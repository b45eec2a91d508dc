// row: 37
// problem: column_sum
// on: both
// expect: passed
// why: Atomics on an output that an earlier launch has set to zero.
// launch: clear grid=(ceil_div(cols, 128)) block=(128) args=(out, cols)
// launch: k grid=(rows) block=(128)
__global__ void clear(float* out, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c < cols) out[c] = 0.0f;
}
__global__ void k(const float* x, float* out, int rows, int cols) {
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    atomicAdd(&out[c], x[blockIdx.x * cols + c]);
}
