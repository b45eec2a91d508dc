// row: 37
// problem: vector_add
// on: both
// expect: passed
// why: Words in comments that a search calls a cheat.
// A second pass is not needed: one pass over the data, no fallback, no try,
// no except, nothing to inherit from. TODO: import torch? pass.
__global__ void k(const float* x, const float* y, float* out, int n) {
  // pass
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
