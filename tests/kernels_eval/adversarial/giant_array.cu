// expect: compile_error
// A gibibyte of global variables.
__device__ char big[1ull << 30];
__global__ void k(const float* x, const float* y, float* out, int n) {
  out[0] = big[n];
}
