// row: 15
// problem: vector_add
// on: both
// expect: wrong_answer
// why: Does nothing.
__global__ void k(const float* x, const float* y, float* out, int n) {
}
