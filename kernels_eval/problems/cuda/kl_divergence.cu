// One warp per row.
// launch: kl_divergence grid=(ceil_div(rows, 4)) block=(32, 4)
__device__ float warp_max(float v) {
  for (int mask = 16; mask > 0; mask /= 2) {
    v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, mask));
  }
  return v;
}

__device__ float warp_sum(float v) {
  for (int mask = 16; mask > 0; mask /= 2) {
    v += __shfl_xor_sync(0xffffffff, v, mask);
  }
  return v;
}

// Largest element of the row, and log of the sum of exp relative to it.
__device__ float2 log_normalizer(const float* row, int cols) {
  float highest = -INFINITY;
  for (int c = threadIdx.x; c < cols; c += 32) {
    highest = fmaxf(highest, row[c]);
  }
  highest = warp_max(highest);
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 32) sum += expf(row[c] - highest);
  return make_float2(highest, logf(warp_sum(sum)));
}

__global__ void kl_divergence(const float* __restrict__ x,
                              const float* __restrict__ y,
                              float* __restrict__ out, int rows, int cols) {
  int r = blockIdx.x * blockDim.y + threadIdx.y;
  if (r >= rows) return;
  float2 of_x = log_normalizer(x + r * cols, cols);
  float2 of_y = log_normalizer(y + r * cols, cols);
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 32) {
    float log_p = (x[r * cols + c] - of_x.x) - of_x.y;
    float log_q = (y[r * cols + c] - of_y.x) - of_y.y;
    sum += expf(log_p) * (log_p - log_q);
  }
  sum = warp_sum(sum);
  if (threadIdx.x == 0) out[r] = sum;
}
