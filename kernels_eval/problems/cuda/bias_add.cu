__global__ void bias_add(const float* __restrict__ x,
                         const float* __restrict__ bias,
                         float* __restrict__ out, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  int r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r < rows && c < cols) out[r * cols + c] = x[r * cols + c] + bias[c];
}
