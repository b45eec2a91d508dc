// row: -
// problem: vector_add
// on: cpu; the trailer of the CPU executor
// expect: compile_error
// why: Opens a comment for the trailer.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
/*
