// row: -
// problem: vector_add
// on: both
// expect cpu: timeout
// expect cuda: wrong_answer timeout
// why: Asks for a field of a gigabyte.
__global__ void k(const float* x, const float* y, float* out, int n) {
  printf("%*d", 1 << 30, 1);
}
