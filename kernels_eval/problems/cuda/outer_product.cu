constexpr int kTile = 16;

// The block's parts of both vectors are staged in shared memory, so that each
// element is loaded once per block and not once per thread.
__global__ void outer_product(const float* x, const float* y, float* out, int m,
                              int n) {
  __shared__ float left[kTile], top[kTile];
  int i = blockIdx.y * kTile + threadIdx.y;
  int j = blockIdx.x * kTile + threadIdx.x;
  if (threadIdx.x == 0 && i < m) left[threadIdx.y] = x[i];
  if (threadIdx.y == 0 && j < n) top[threadIdx.x] = y[j];
  __syncthreads();
  if (i < m && j < n) out[i * n + j] = left[threadIdx.y] * top[threadIdx.x];
}
