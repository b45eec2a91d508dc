// row: -
// problem: vector_add
// on: both
// expect cpu: integrity_violation
// expect cuda: compile_error wrong_answer
// why: Defines threadIdx: one thread that believes to be all.
const uint3 threadIdx = {0, 0, 0};
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
