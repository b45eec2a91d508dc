// row: 28
// problem: vector_add
// on: both
// expect cpu: runtime_error
// expect cuda: runtime_error wrong_answer timeout
// why: Looks for other buffers in front of its own.
__global__ void k(const float* x, const float* y, float* out, int n) {
  for (int j = 0; j < 1 << 24; j++)
    if (x[-j] == 42.0f) out[0] = x[-j];
}
