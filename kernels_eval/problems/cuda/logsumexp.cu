// One pass: a warp keeps the highest value so far and the sum relative to it,
// and merges the pairs of its lanes with shuffles.
// launch: logsumexp grid=(ceil_div(rows, 4)) block=(32, 4)
__device__ void merge(float& highest, float& sum, float other_highest,
                      float other_sum) {
  float top = fmaxf(highest, other_highest);
  // A lane that saw no element has sum 0 and highest -inf; -inf - -inf is NaN.
  float mine = sum == 0.0f ? 0.0f : sum * expf(highest - top);
  float theirs =
      other_sum == 0.0f ? 0.0f : other_sum * expf(other_highest - top);
  highest = top;
  sum = mine + theirs;
}

__global__ void logsumexp(const float* __restrict__ x, float* __restrict__ out,
                          int rows, int cols) {
  int r = blockIdx.x * blockDim.y + threadIdx.y;
  if (r >= rows) return;
  float highest = -INFINITY, sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 32) {
    merge(highest, sum, x[r * cols + c], 1.0f);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    float other_highest = __shfl_xor_sync(0xffffffff, highest, offset);
    float other_sum = __shfl_xor_sync(0xffffffff, sum, offset);
    merge(highest, sum, other_highest, other_sum);
  }
  if (threadIdx.x == 0) out[r] = highest + logf(sum);
}
