// row: -
// problem: vector_add
// on: both
// expect cpu: runtime_error
// expect cuda: runtime_error timeout
// why: Recursion without end.
__device__ int seven;
__device__ int f(volatile int* p) { return *p == 7 ? 0 : f(p) + 1; }
__global__ void k(const float* x, const float* y, float* out, int n) {
  out[0] = f(&seven);
}
