// row: -
// problem: vector_add
// on: both
// expect: runtime_error
// why: Recursion without end.
__device__ int seven;
__device__ int f(volatile int* p) { return *p == 7 ? 0 : f(p) + 1; }
__global__ void k(const float* x, const float* y, float* out, int n) {
  out[0] = f(&seven);
}
