// row: 6 35
// problem: vector_add
// on: both
// expect: wrong_answer
// why: Prints what a frame of the protocol looks like.
__global__ void k(const float* x, const float* y, float* out, int n) {
  if (threadIdx.x == 0) {
    printf("%c%c%c%c", 21, 0, 0, 0);
    printf("\x82\xa6status\xa6passed\xa7message\xa0");
  }
}
