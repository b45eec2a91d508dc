// A block of 64 threads makes 32 x 32 results, each thread 4 x 4 of them in
// registers. Both tiles are stored with l first.
// launch: matmul<32, 4> grid=(ceil_div(n, 32), ceil_div(m, 32)) block=(8, 8)
template <int kTile, int kEach>
__global__ void matmul(const float* __restrict__ a, const float* __restrict__ b,
                       float* __restrict__ out, int m, int n, int k) {
  constexpr int kDepth = 8, kSide = kTile / kEach;
  __shared__ float tile_a[kDepth][kTile + 1], tile_b[kDepth][kTile + 1];
  int first_i = blockIdx.y * kTile, first_j = blockIdx.x * kTile;
  int thread = threadIdx.y * kSide + threadIdx.x;
  float sum[kEach][kEach] = {};
  for (int first = 0; first < k; first += kDepth) {
    for (int e = thread; e < kTile * kDepth; e += kSide * kSide) {
      int row = e / kDepth, l = e % kDepth;
      bool in_k = first + l < k;
      tile_a[l][row] =
          in_k && first_i + row < m ? a[(first_i + row) * k + first + l] : 0.0f;
      tile_b[l][row] =
          in_k && first_j + row < n ? b[(first_j + row) * k + first + l] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kDepth; l++) {
#pragma unroll
      for (int u = 0; u < kEach; u++) {
#pragma unroll
        for (int v = 0; v < kEach; v++) {
          sum[u][v] += tile_a[l][threadIdx.y + u * kSide] *
                       tile_b[l][threadIdx.x + v * kSide];
        }
      }
    }
    __syncthreads();
  }
  for (int u = 0; u < kEach; u++) {
    for (int v = 0; v < kEach; v++) {
      int i = first_i + threadIdx.y + u * kSide;
      int j = first_j + threadIdx.x + v * kSide;
      if (i < m && j < n) out[i * n + j] = sum[u][v];
    }
  }
}
