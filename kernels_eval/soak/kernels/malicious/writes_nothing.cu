// row: -
// problem: vector_add
// on: both
// expect: wrong_answer
// why: Hopes for an answer that lies there already.
__global__ void k(const float* x, const float* y, float* out, int n) {
}
