// row: 23
// problem: vector_add
// on: both
// expect: wrong_answer
// why: Keeps the 8 bits of a bfloat16.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = x[i] + y[i];
  out[i] = __uint_as_float(__float_as_uint(sum) & 0xffff0000u);
}
