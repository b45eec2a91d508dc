// row: 1
// problem: vector_add
// on: both
// expect: contract_violation
// why: Host code that works on a stream of its own.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

void run(const float* x, const float* y, float* out, int n) {
  cudaStream_t side;
  cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  k<<<(n + 255) / 256, 256, 0, side>>>(x, y, out, n);
}
