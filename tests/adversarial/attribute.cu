// row: -
// problem: vector_add
// on: cpu; an attribute of g++
// expect: compile_error
// why: A GNU attribute that is not CUDA.
__attribute__((no_sanitize_thread))
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
