// row: 20
// problem: row_argmax
// on: both
// expect: wrong_answer
// why: The last of equal maxima in place of the first.
__global__ void k(const float* x, int* out, int rows, int cols) {
  if (threadIdx.x != 0) return;
  int best = 0;
  for (int c = 1; c < cols; c++)
    if (x[blockIdx.x * cols + c] >= x[blockIdx.x * cols + best]) best = c;
  out[blockIdx.x] = best;
}
