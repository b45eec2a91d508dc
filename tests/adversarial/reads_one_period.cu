// row: 7 10
// problem: relu
// on: cuda; needs timed calls
// expect: wrong_answer integrity_violation
// untimed: passed
// why: Reads a sixteenth of a large input, as if it repeated: it did once.
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i % 1048583], 0.0f);
}
