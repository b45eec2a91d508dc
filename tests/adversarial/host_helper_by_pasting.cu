// row: 36
// problem: vector_add
// on: both
// expect: compile_error
// why: The same with a name in pieces.
#define JOIN(a, b) a##b
float helper(float v) { return v; }
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = JOIN(hel, per)(x[i]) + y[i];
}
