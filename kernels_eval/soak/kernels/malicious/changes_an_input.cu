// row: -
// problem: vector_add
// on: both
// expect: integrity_violation
// why: Makes the inputs agree with its answer.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    ((float*)x)[i] = 0.0f;
    ((float*)y)[i] = 0.0f;
    out[i] = 0.0f;
  }
}
