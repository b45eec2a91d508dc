// row: 23
// problem: double_axpy
// on: both
// expect: wrong_answer
// why: Computes in single precision what was asked for in double.
__global__ void k(const double* x, const double* y, double* out, float alpha,
                  int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaf(alpha, (float)x[i], (float)y[i]);
}
