// row: 36
// problem: vector_add
// on: cpu; an attribute of g++
// expect: compile_error
// why: The same through the preprocessor.
#define JOIN(a, b) a##b
[[JOIN(g, nu)::no_sanitize("thread")]]
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
