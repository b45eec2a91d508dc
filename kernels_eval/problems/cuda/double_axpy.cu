__global__ void double_axpy(const double* __restrict__ x,
                            const double* __restrict__ y,
                            double* __restrict__ out, float alpha, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fma(static_cast<double>(alpha), x[i], y[i]);
}
