// expect: runtime_error
// Recursion without end.
__device__ int f(volatile int* p) { return *p == 7 ? 0 : f(p) + 1; }
__device__ int seven;
__global__ void k(const float* x, const float* y, float* out, int n) {
  out[0] = f(&seven);
}
