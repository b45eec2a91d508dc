// row: -
// problem: vector_add
// on: both
// expect cpu: runtime_error
// expect cuda: runtime_error wrong_answer integrity_violation passed
// why: Searches memory in front of its input.
__global__ void k(const float* x, const float* y, float* out, int n) {
  for (int j = 0; j < 1 << 20; j++)
    if (x[-j] == 42.0f) out[0] = x[-j];
}
