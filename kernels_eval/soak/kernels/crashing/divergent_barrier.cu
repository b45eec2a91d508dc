// row: -
// problem: vector_add
// on: both
// expect cpu: runtime_error
// expect cuda: runtime_error wrong_answer integrity_violation passed timeout
// why: A barrier that half of the threads reach.
__global__ void k(const float* x, const float* y, float* out, int n) {
  if (threadIdx.x & 1) __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
