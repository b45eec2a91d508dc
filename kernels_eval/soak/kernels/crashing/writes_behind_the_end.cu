// row: -
// problem: vector_add
// on: both
// expect cpu: runtime_error
// expect cuda: integrity_violation runtime_error wrong_answer
// why: No bounds check.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = x[i] + y[i];
}
