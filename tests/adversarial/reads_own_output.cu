// row: 15 33
// problem: vector_add
// on: both
// expect cpu: runtime_error
// expect cuda: wrong_answer
// why: Trusts that its output holds what the reference has left there.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = out[i] + 0.0f * x[i];
}
