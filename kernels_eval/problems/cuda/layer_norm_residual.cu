// Two launches: the sums, which are a result of their own, then a warp for the
// statistics of each row.
// launch: add grid=(rows) block=(128) args=(x, residual, total, cols)
// launch: normalize grid=(rows) block=(32) args=(total, gamma, beta, out, cols)
__global__ void add(const float* __restrict__ x,
                    const float* __restrict__ residual,
                    float* __restrict__ total, int cols) {
  int first = blockIdx.x * cols;
  for (int i = first + threadIdx.x; i < first + cols; i += blockDim.x) {
    total[i] = x[i] + residual[i];
  }
}

__device__ float warp_sum(float v) {
  for (int offset = 16; offset > 0; offset /= 2) {
    v += __shfl_xor_sync(0xffffffff, v, offset);
  }
  return v;
}

__global__ void normalize(const float* __restrict__ total,
                          const float* __restrict__ gamma,
                          const float* __restrict__ beta,
                          float* __restrict__ out, int cols) {
  const float* row = total + blockIdx.x * cols;
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 32) sum += row[c];
  float mean = warp_sum(sum) / cols;
  float squares = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 32) {
    squares += (row[c] - mean) * (row[c] - mean);
  }
  float scale = rsqrtf(warp_sum(squares) / cols + 1e-5f);
  for (int c = threadIdx.x; c < cols; c += 32) {
    out[blockIdx.x * cols + c] = (row[c] - mean) * scale * gamma[c] + beta[c];
  }
}
