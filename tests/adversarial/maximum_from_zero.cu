// row: 20
// problem: row_max
// on: both
// expect: wrong_answer
// why: A maximum that starts at zero: wrong for negative rows.
__global__ void k(const float* x, float* out, int rows, int cols) {
  if (threadIdx.x != 0) return;
  float highest = 0.0f;
  for (int c = 0; c < cols; c++)
    highest = fmaxf(highest, x[blockIdx.x * cols + c]);
  out[blockIdx.x] = highest;
}
