// row: -
// problem: vector_add
// on: both
// expect: contract_violation
// why: A terabyte of scratch.
// scratch: tmp float32 (n * 1000000000)
// launch: k grid=(1) block=(1)
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
