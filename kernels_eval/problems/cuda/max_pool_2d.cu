__global__ void max_pool_2d(const float* __restrict__ x,
                            float* __restrict__ out, int planes, int height,
                            int width) {
  int out_height = (height + 1) / 2, out_width = (width + 1) / 2;
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int p = blockIdx.z;
  if (i >= out_height || j >= out_width) return;
  float highest = -INFINITY;
#pragma unroll
  for (int dr = -1; dr <= 1; dr++) {
#pragma unroll
    for (int dc = -1; dc <= 1; dc++) {
      int r = 2 * i + dr, c = 2 * j + dc;
      if (r < 0 || r >= height || c < 0 || c >= width) continue;
      highest = fmaxf(highest, x[(p * height + r) * width + c]);
    }
  }
  out[(p * out_height + i) * out_width + j] = highest;
}
