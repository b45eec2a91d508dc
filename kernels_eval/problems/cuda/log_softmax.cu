// One warp per row; xor shuffles leave the result in every lane.
// launch: log_softmax grid=(ceil_div(rows, 4)) block=(32, 4)
__global__ void log_softmax(const float* __restrict__ x,
                            float* __restrict__ out, int rows, int cols) {
  int r = blockIdx.x * blockDim.y + threadIdx.y;
  if (r >= rows) return;
  const float* row = x + r * cols;
  float highest = -INFINITY;
  for (int c = threadIdx.x; c < cols; c += warpSize) {
    highest = fmaxf(highest, row[c]);
  }
  for (int mask = 16; mask > 0; mask >>= 1) {
    highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, mask));
  }
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += warpSize) {
    sum += __expf(row[c] - highest);
  }
  for (int mask = 16; mask > 0; mask >>= 1) {
    sum += __shfl_xor_sync(0xffffffffu, sum, mask);
  }
  float shift = highest + logf(sum);
  for (int c = threadIdx.x; c < cols; c += warpSize) {
    out[r * cols + c] = row[c] - shift;
  }
}
