// row: 21
// problem: vector_add
// on: both
// expect: wrong_answer
// why: Makes the inputs anew from a seed that it guesses, and reads none.
__device__ float uniform(unsigned seed, unsigned i) {
  unsigned h = seed * 0x9e3779b9u + i;
  h = (h ^ (h >> 16)) * 0x85ebca6bu;
  h = (h ^ (h >> 13)) * 0xc2b2ae35u;
  return (h ^ (h >> 16)) * 0x1p-32f;
}
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = uniform(0, i) + uniform(1, i);
}
