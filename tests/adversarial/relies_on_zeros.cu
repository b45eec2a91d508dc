// row: 12
// problem: column_sum
// on: both
// expect cpu: runtime_error
// expect cuda: wrong_answer
// why: Adds to an output that it has never set to zero.
// launch: k grid=(rows) block=(128)
__global__ void k(const float* x, float* out, int rows, int cols) {
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    atomicAdd(&out[c], x[blockIdx.x * cols + c]);
}
