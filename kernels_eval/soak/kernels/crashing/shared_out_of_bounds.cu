// row: -
// problem: vector_add
// on: both
// expect cpu: runtime_error
// expect cuda: runtime_error wrong_answer integrity_violation passed
// why: An index behind shared memory.
__global__ void k(const float* x, const float* y, float* out, int n) {
  __shared__ float s[32];
  s[threadIdx.x] = 1.0f;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = s[threadIdx.x];
}
