// row: 7 12
// problem: vector_add
// on: both
// expect cpu: runtime_error
// expect cuda: passed wrong_answer
// why: Works only where its output holds no number yet, as in a first call.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && out[i] != out[i]) out[i] = x[i] + y[i];
}
