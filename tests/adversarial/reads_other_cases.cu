// row: 28
// problem: vector_add
// on: both
// expect cpu: runtime_error
// expect cuda: wrong_answer runtime_error
// why: Reads past a buffer, where other cases' data may lie.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i + (1 << 16)];
}
