// row: 4
// problem: vector_add
// on: both
// expect: contract_violation
// why: Brings a timer of its own.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

extern "C" int cudaEventElapsedTime(float* ms, void*, void*) {
  *ms = 0.001f;
  return 0;
}
