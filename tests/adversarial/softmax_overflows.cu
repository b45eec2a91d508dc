// row: 20 30
// problem: softmax
// on: both
// expect: wrong_answer
// why: A softmax without its maximum: infinity over infinity for large inputs.
__global__ void k(const float* x, float* out, int rows, int cols) {
  const float* row = x + blockIdx.x * cols;
  float sum = 0.0f;
  for (int c = 0; c < cols; c++) sum += expf(row[c]);
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    out[blockIdx.x * cols + c] = expf(row[c]) / sum;
}
