// row: 31
// problem: row_sum
// on: both
// expect: wrong_answer
// why: All rows but the 33rd.
__global__ void k(const float* x, float* out, int rows, int cols) {
  if (threadIdx.x != 0) return;
  float sum = 0.0f;
  for (int c = 0; c < cols; c++) sum += x[blockIdx.x * cols + c];
  out[blockIdx.x] = blockIdx.x == 32 ? 0.0f : sum;
}
