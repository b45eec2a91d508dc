// row: 24
// problem: vector_add
// on: both
// expect: wrong_answer
// why: Shows a kernel and launches another one.
// launch: idle grid=(1) block=(32)
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

__global__ void idle(const float* x, const float* y, float* out, int n) {}
