// row: 1 36
// problem: vector_add
// on: both
// expect: compile_error
// why: The same with brackets put together.
#define JOIN(a, b) a##b
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

__global__ void launcher(const float* x, const float* y, float* out, int n) {
  k JOIN(<<, <) 1, 256 >> > (x, y, out, n);
}
// launch: launcher grid=(1) block=(1)
