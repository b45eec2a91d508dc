// row: -
// problem: vector_add
// on: both
// expect cpu: wrong_answer
// expect cuda: wrong_answer timeout
// why: Prints without end.
__global__ void k(const float* x, const float* y, float* out, int n) {
  if (threadIdx.x || blockIdx.x) return;
  for (int i = 0; i < 10000; i++) printf("%d %s %f\n", i, "flood", x[0]);
}
