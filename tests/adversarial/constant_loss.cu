// row: 19
// problem: cross_entropy
// on: both
// expect: wrong_answer
// why: The loss of a guess, log(classes), for every row.
__global__ void k(const float* logits, const int* label, float* out, int rows,
                  int classes) {
  if (threadIdx.x == 0) out[blockIdx.x] = logf((float)classes);
}
