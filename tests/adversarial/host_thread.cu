// row: 2
// problem: vector_add
// on: both
// expect: compile_error
// why: A thread of the host that goes on after the launch.
#include <thread>
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

void later(float* out) {
  std::thread([=] { out[0] = 1.0f; }).detach();
}
