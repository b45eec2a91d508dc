// row: 6
// problem: vector_add
// on: both
// expect: compile_error
// why: Fakes the message of a check of ours.
static_assert(sizeof(int) == 3, "KE_TYPE 99 7");
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
