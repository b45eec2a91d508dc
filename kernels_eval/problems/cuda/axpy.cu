// A grid-stride loop: right for any size of the grid.
__global__ void axpy(const float* __restrict__ x, const float* __restrict__ y,
                     float* __restrict__ out, float alpha, int n) {
  int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    out[i] = fmaf(alpha, x[i], y[i]);
  }
}
