// row: -
// problem: vector_add
// on: both
// expect: compile_error
// why: Calls the C library: socket.
extern "C" int socket(int, int, int);
__global__ void k(const float* x, const float* y, float* out, int n) {
  socket(2, 1, 0);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
