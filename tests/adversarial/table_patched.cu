// row: 5
// problem: vector_add
// on: cpu; a table of the host's linker
// expect: compile_error runtime_error
// why: Writes to the table of addresses of library functions.
extern "C" void* _GLOBAL_OFFSET_TABLE_[];
__global__ void k(const float* x, const float* y, float* out, int n) {
  _GLOBAL_OFFSET_TABLE_[3] = nullptr;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
