// row: 1 9
// problem: vector_add
// on: both
// expect: contract_violation
// why: A kernel that launches another, which the timer need not wait for.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

__global__ void launcher(const float* x, const float* y, float* out, int n) {
  if (threadIdx.x + blockIdx.x == 0)
    k<<<(n + 255) / 256, 256, 0, cudaStreamFireAndForget>>>(x, y, out, n);
}
// launch: launcher grid=(1) block=(1)
