// row: -
// problem: vector_add
// on: cpu; a name of the CPU runtime
// expect: integrity_violation
// why: Defines the executor's barrier.
#define JOIN(a, b) a##b
extern "C" void JOIN(ke_sync, _block)(int, int) {}
__global__ void k(const float* x, const float* y, float* out, int n) {
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
