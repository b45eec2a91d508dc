// row: 20
// problem: relu
// on: both
// expect: wrong_answer
// why: A rectifier that does nothing: right for positive inputs.
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i];
}
