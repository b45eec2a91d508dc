// row: 34
// problem: row_sum
// on: both
// expect cpu: runtime_error
// expect cuda: wrong_answer
// why: Adds to an output without atomics.
// launch: clear grid=(rows) block=(1) args=(out)
// launch: k grid=(rows) block=(256)
__global__ void clear(float* out) { out[blockIdx.x] = 0.0f; }
__global__ void k(const float* x, float* out, int rows, int cols) {
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    out[blockIdx.x] += x[blockIdx.x * cols + c];
}
