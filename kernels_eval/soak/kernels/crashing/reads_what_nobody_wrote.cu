// row: -
// problem: vector_add
// on: both
// expect cpu: runtime_error
// expect cuda: runtime_error wrong_answer integrity_violation passed
// why: Shared memory that nothing was written to.
__global__ void k(const float* x, const float* y, float* out, int n) {
  __shared__ float s[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = s[threadIdx.x];
}
