// row: -
// problem: vector_add
// on: cpu; an attribute of g++
// expect: compile_error
// why: Asks the compiler to leave the checks out.
[[gnu::no_sanitize("thread")]]
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
