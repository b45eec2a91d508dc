// row: 18
// problem: softmax
// on: both
// expect: wrong_answer
// why: Zeros for a softmax, whose outputs are small.
__global__ void k(const float* x, float* out, int rows, int cols) {
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    out[blockIdx.x * cols + c] = 0.0f;
}
