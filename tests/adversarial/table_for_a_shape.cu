// row: 13 22
// problem: vector_add
// on: both
// expect: wrong_answer
// why: Has the answer for a known shape in a table.
__constant__ float answers[1] = {0.125730f};
__global__ void k(const float* x, const float* y, float* out, int n) {
  if (n == 1) {
    out[0] = answers[0];
    return;
  }
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
