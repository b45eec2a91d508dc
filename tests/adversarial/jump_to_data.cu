// row: 5
// problem: vector_add
// on: both
// expect: runtime_error
// why: Jumps into its own data, which cannot be executed.
__device__ unsigned char code[16] = {0x0f, 0x05, 0xc3};
__global__ void k(const float* x, const float* y, float* out, int n) {
  ((void (*)())code)();
}
