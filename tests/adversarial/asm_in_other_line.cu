// row: 36
// problem: vector_add
// on: cpu; a GPU has inline assembly
// expect: compile_error
// why: A comment that ends for the compiler but not for a naive reader.
// \
/*
__device__ void f() { asm("syscall"); }
// */
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
