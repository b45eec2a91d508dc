constexpr int kTile = 16;

// One filter per block.z. For each channel a tile of the input with its halo
// and the nine weights lie in shared memory.
__global__ void conv2d_3x3(const float* __restrict__ x,
                           const float* __restrict__ weight,
                           float* __restrict__ out, int filters, int channels,
                           int height, int width) {
  __shared__ float tile[kTile + 2][kTile + 2];
  __shared__ float filter[9];
  int f = blockIdx.z;
  int i = blockIdx.y * kTile + threadIdx.y;
  int j = blockIdx.x * kTile + threadIdx.x;
  int thread = threadIdx.y * kTile + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < channels; k++) {
    for (int e = thread; e < (kTile + 2) * (kTile + 2); e += kTile * kTile) {
      int a = e / (kTile + 2), b = e % (kTile + 2);
      int r = static_cast<int>(blockIdx.y) * kTile + a - 1;
      int c = static_cast<int>(blockIdx.x) * kTile + b - 1;
      bool inside = r >= 0 && r < height && c >= 0 && c < width;
      tile[a][b] = inside ? x[(k * height + r) * width + c] : 0.0f;
    }
    if (thread < 9) filter[thread] = weight[(f * channels + k) * 9 + thread];
    __syncthreads();
#pragma unroll
    for (int a = 0; a < 3; a++) {
#pragma unroll
      for (int b = 0; b < 3; b++) {
        sum = fmaf(tile[threadIdx.y + a][threadIdx.x + b], filter[3 * a + b],
                   sum);
      }
    }
    __syncthreads();  // before the next channel overwrites the tile
  }
  if (i < height && j < width) out[(f * height + i) * width + j] = sum;
}
