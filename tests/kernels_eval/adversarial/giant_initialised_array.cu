// expect: compile_error
// Eight gibibytes of initialised data.
__device__ char big[1ull << 33] = {1};
__global__ void k(const float* x, const float* y, float* out, int n) {
  out[0] = big[n];
}
