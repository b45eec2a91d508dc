// row: 16
// problem: vector_add
// on: both
// expect cpu: runtime_error
// expect cuda: wrong_answer
// why: Reads shared memory that another block may have filled.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ float s[256];
  if (i < n) out[i] = s[threadIdx.x];
  if (i < n) s[threadIdx.x] = x[i] + y[i];
}
