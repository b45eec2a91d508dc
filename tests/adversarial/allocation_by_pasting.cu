// row: 36
// problem: vector_add
// on: both
// expect: compile_error
// why: Host functions in pieces.
#define HOST(name) cuda##name
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

void run(float* p) { HOST(Malloc)(&p, 4); }
