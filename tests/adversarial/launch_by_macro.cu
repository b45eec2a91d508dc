// row: 1 36
// problem: vector_add
// on: both
// expect: compile_error
// why: Launch brackets in a macro, where a search for tokens skips them.
#define OPEN <<<
#define CLOSE >>>
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

void run(const float* x, const float* y, float* out, int n) {
  k OPEN 1, 256 CLOSE(x, y, out, n);
}
