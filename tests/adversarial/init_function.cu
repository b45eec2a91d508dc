// row: -
// problem: vector_add
// on: cpu; no loader runs functions of a GPU's code
// expect: integrity_violation
// why: A linker has this one run when the kernel is loaded.
__device__ int ran;
extern "C" void _init() { ran = 9; }
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && ran == 9) out[i] = x[i] + y[i];
}
