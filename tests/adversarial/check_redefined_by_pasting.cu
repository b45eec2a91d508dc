// row: 5 36
// problem: vector_add
// on: cpu; a name of the CPU runtime
// expect: integrity_violation
// why: The same, with a name that only the preprocessor puts together.
#define JOIN(a, b) a##b
extern "C" void JOIN(__tsan, _write4)(void*) {}
extern "C" void JOIN(__tsan, _read4)(void*) {}
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
