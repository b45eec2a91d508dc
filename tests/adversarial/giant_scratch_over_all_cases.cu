// row: -
// problem: vector_add
// on: cpu; its records of accesses take 30 times the memory
// expect: contract_violation
// why: More scratch over all cases than there may be.
// scratch: tmp uint8 (8 * 1024 * 1024)
// launch: k grid=(ceil_div(n, 256)) block=(256)
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
