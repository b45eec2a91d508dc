// row: 32
// problem: layer_norm_residual
// on: both
// expect: wrong_answer
// why: The first of two outputs is right, the second is left.
__global__ void k(const float* x, const float* residual, const float* gamma,
                  const float* beta, float* total, float* out, int rows,
                  int cols) {
  if (threadIdx.x != 0) return;
  int first = blockIdx.x * cols;
  float sum = 0.0f, squares = 0.0f;
  for (int c = 0; c < cols; c++) sum += x[first + c] + residual[first + c];
  float mean = sum / cols;
  for (int c = 0; c < cols; c++) {
    float centred = x[first + c] + residual[first + c] - mean;
    squares += centred * centred;
  }
  float scale = rsqrtf(squares / cols + 1e-5f);
  for (int c = 0; c < cols; c++) {
    float t = x[first + c] + residual[first + c];
    total[first + c] = t + 0.0f * scale;
  }
}
