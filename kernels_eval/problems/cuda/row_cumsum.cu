// One block per row. The row is scanned in pieces of one element per thread
// (Hillis and Steele); `carry` is the sum of the pieces before.
__global__ void row_cumsum(const float* __restrict__ x, float* __restrict__ out,
                           int rows, int cols) {
  __shared__ float scan[256];
  int t = threadIdx.x;
  float carry = 0.0f;
  for (int first = 0; first < cols; first += blockDim.x) {
    int c = first + t;
    scan[t] = c < cols ? x[blockIdx.x * cols + c] : 0.0f;
    __syncthreads();
    for (int offset = 1; offset < blockDim.x; offset *= 2) {
      float before = t >= offset ? scan[t - offset] : 0.0f;
      __syncthreads();
      scan[t] += before;
      __syncthreads();
    }
    if (c < cols) out[blockIdx.x * cols + c] = carry + scan[t];
    carry += scan[blockDim.x - 1];
    __syncthreads();
  }
}
