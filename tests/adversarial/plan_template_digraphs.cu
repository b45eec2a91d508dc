// row: -
// problem: vector_add
// on: both
// expect: contract_violation
// why: Brackets in other spellings in template arguments.
// launch: k<% int a<:1:> = %> grid=(ceil_div(n, 256)) block=(256)
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
