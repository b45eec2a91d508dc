// row: -
// problem: vector_add
// on: both
// expect cpu: runtime_error
// expect cuda: wrong_answer passed
// why: An integer divided by zero; a device gives a number.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + i / (n - n);
}
