// row: 9
// problem: vector_add
// on: both
// expect cpu: runtime_error
// expect cuda: runtime_error integrity_violation
// why: Fills the buffers of later calls too, where they may lie.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int call = 0; call < 16; call++, i += n)
    if (i < 16 * n) out[i] = x[i] + y[i];
}
