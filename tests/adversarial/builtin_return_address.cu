// row: 5
// problem: vector_add
// on: cpu; a function of g++
// expect: compile_error
// why: Looks for the caller.
__global__ void k(const float* x, const float* y, float* out, int n) {
  *(void**)__builtin_return_address(0) = nullptr;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
