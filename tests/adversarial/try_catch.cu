// row: 25
// problem: vector_add
// on: both
// expect: compile_error
// why: An exception that leads to something else.
__global__ void k(const float* x, const float* y, float* out, int n) {
  try {
    out[0] = x[0];
  } catch (...) {
  }
}
