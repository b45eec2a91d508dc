// row: 36
// problem: vector_add
// on: both
// expect cpu: passed
// expect cuda: compile_error
// why: A main function in pieces: on the CPU nobody ever calls it.
#define JOIN(a, b) a##b
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

int JOIN(ma, in)() { return 0; }
