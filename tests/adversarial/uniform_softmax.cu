// row: 19
// problem: softmax
// on: both
// expect: wrong_answer
// why: One over the number of columns, without a look at the inputs.
__global__ void k(const float* x, float* out, int rows, int cols) {
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    out[blockIdx.x * cols + c] = 1.0f / cols;
}
