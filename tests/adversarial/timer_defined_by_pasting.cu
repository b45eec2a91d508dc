// row: 4 36
// problem: vector_add
// on: both
// expect cpu: passed
// expect cuda: compile_error
// why: The same in pieces: on the CPU nobody ever calls it.
#define JOIN(a, b) a##b
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

extern "C" int JOIN(cudaEvent, ElapsedTime)(float* ms, void*, void*) {
  *ms = 0.001f;
  return 0;
}
