// row: -
// problem: vector_add
// on: both
// expect: runtime_error
// why: A read across a word.
__global__ void k(const float* x, const float* y, float* out, int n) {
  const float* p = (const float*)((const char*)x + 1);
  if (n > 1 && threadIdx.x == 0) out[0] = p[0];
}
