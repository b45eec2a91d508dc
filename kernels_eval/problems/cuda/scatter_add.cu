// The order in which equal indices arrive is open, so rows are added by
// atomics, after a launch that sets all bins to 0.
// launch: clear grid=(bins) block=(64) args=(out, cols)
// launch: add grid=(n) block=(64) args=(x, index, out, cols)
__global__ void clear(float* out, int cols) {
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    out[blockIdx.x * cols + c] = 0.0f;
  }
}

__global__ void add(const float* __restrict__ x, const int* __restrict__ index,
                    float* __restrict__ out, int cols) {
  float* bin = out + index[blockIdx.x] * cols;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    atomicAdd(&bin[c], x[blockIdx.x * cols + c]);
  }
}
