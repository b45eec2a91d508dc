// row: 26 36
// problem: vector_add
// on: both
// expect: compile_error
// why: The same in other letters.
%:include "/etc/passwd"
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
