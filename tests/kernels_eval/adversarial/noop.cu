// expect: wrong_answer
// Does nothing.
__global__ void k(const float* x, const float* y, float* out, int n) {
}
