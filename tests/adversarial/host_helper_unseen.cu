// row: 36
// problem: vector_add
// on: both
// expect: compile_error
// why: Switches off the warning by which code of the host is found.
#define JOIN(a, b) a##b
JOIN(_Pra, gma)("GCC diagnostic ignored \"-Wdeprecated-declarations\"")
float helper(float v) { return v; }
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = helper(x[i]) + y[i];
}
