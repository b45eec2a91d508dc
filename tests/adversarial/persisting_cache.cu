// row: 10
// problem: vector_add
// on: both
// expect: contract_violation
// why: Asks the driver to keep its inputs in the L2 cache.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

void prepare(float* x, size_t bytes) {
  cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, bytes);
  cudaStreamAttrValue window = {};
  window.accessPolicyWindow.base_ptr = x;
  window.accessPolicyWindow.num_bytes = bytes;
  window.accessPolicyWindow.hitRatio = 1.0f;
  cudaStreamSetAttribute(0, cudaStreamAttributeAccessPolicyWindow, &window);
}
