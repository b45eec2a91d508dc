// One warp per row, eight rows per block.
// launch: row_max grid=(ceil_div(rows, 8)) block=(32, 8)
__global__ void row_max(const float* __restrict__ x, float* __restrict__ out,
                        int rows, int cols) {
  int r = blockIdx.x * blockDim.y + threadIdx.y;
  if (r >= rows) return;  // the same for a whole warp
  float highest = -INFINITY;
  for (int c = threadIdx.x; c < cols; c += 32) {
    highest = fmaxf(highest, x[r * cols + c]);
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    highest = fmaxf(highest, __shfl_down_sync(0xffffffff, highest, offset));
  }
  if (threadIdx.x == 0) out[r] = highest;
}
