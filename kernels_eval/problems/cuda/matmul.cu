constexpr int kTile = 16;

// Tiles of both matrices lie in shared memory; what is outside of a matrix
// counts as 0, so that every thread takes part in every barrier.
__global__ void matmul(const float* __restrict__ a, const float* __restrict__ b,
                       float* __restrict__ out, int m, int n, int k) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  int i = blockIdx.y * kTile + threadIdx.y;
  int j = blockIdx.x * kTile + threadIdx.x;
  float sum = 0.0f;
  for (int first = 0; first < k; first += kTile) {
    int la = first + threadIdx.x, lb = first + threadIdx.y;
    tile_a[threadIdx.y][threadIdx.x] = i < m && la < k ? a[i * k + la] : 0.0f;
    tile_b[threadIdx.y][threadIdx.x] = lb < k && j < n ? b[lb * n + j] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kTile; l++) {
      sum = fmaf(tile_a[threadIdx.y][l], tile_b[l][threadIdx.x], sum);
    }
    __syncthreads();
  }
  if (i < m && j < n) out[i * n + j] = sum;
}
