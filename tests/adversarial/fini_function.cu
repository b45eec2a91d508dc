// row: -
// problem: vector_add
// on: cpu; no loader runs functions of a GPU's code
// expect: integrity_violation
// why: A linker has this one run when the kernel is unloaded.
extern "C" void _fini() {}
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
