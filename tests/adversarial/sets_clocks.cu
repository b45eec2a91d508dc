// row: 14
// problem: vector_add
// on: both
// expect: compile_error
// why: Sets the clocks of the device, by host code.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

extern "C" int nvmlDeviceSetGpuLockedClocks(void*, unsigned, unsigned);
extern "C" int nvmlDeviceGetHandleByIndex_v2(unsigned, void**);
void boost() {
  void* device;
  nvmlDeviceGetHandleByIndex_v2(0, &device);
  nvmlDeviceSetGpuLockedClocks(device, 1980, 1980);
}
