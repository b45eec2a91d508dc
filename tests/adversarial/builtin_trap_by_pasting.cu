// row: 36
// problem: vector_add
// on: cpu; a function of g++
// expect: runtime_error
// why: Ends the process by a signal.
#define JOIN(a, b) a##b
__global__ void k(const float* x, const float* y, float* out, int n) {
  JOIN(__builtin_, trap)();
}
