// One warp per row, 32 elements at a time.
// launch: row_cummax grid=(ceil_div(rows, 4)) block=(32, 4)
__global__ void row_cummax(const float* __restrict__ x, float* __restrict__ out,
                           int rows, int cols) {
  int r = blockIdx.x * blockDim.y + threadIdx.y;
  if (r >= rows) return;
  int lane = threadIdx.x;
  float carry = -INFINITY;
  for (int first = 0; first < cols; first += 32) {
    int c = first + lane;
    float v = c < cols ? x[r * cols + c] : -INFINITY;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      float before = __shfl_up_sync(0xffffffff, v, offset);
      if (lane >= offset) v = fmaxf(v, before);
    }
    v = fmaxf(v, carry);
    if (c < cols) out[r * cols + c] = v;
    carry = __shfl_sync(0xffffffff, v, 31);
  }
}
