// row: 23
// problem: count_above
// on: both
// expect: wrong_answer
// why: A whole number from a quotient: off by one is wrong.
__global__ void k(const float* x, int* out, float threshold, int n) {
  if (threadIdx.x != 0) return;
  int count = 0;
  for (int i = 0; i < n; i++) count += x[i] >= threshold;
  out[0] = count;
}
