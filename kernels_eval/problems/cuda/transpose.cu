constexpr int kTile = 32, kRowsAtOnce = 8;

// Reads and writes both go along rows; the turn happens in shared memory. The
// 33rd column keeps a column of the tile in 32 different banks.
__global__ void transpose(const float* __restrict__ x, float* __restrict__ out,
                          int rows, int cols) {
  __shared__ float tile[kTile][kTile + 1];
  int c = blockIdx.x * kTile + threadIdx.x;
  int r = blockIdx.y * kTile + threadIdx.y;
#pragma unroll
  for (int k = 0; k < kTile; k += kRowsAtOnce) {
    if (c < cols && r + k < rows) {
      tile[threadIdx.y + k][threadIdx.x] = x[(r + k) * cols + c];
    }
  }
  __syncthreads();
  c = blockIdx.x * kTile + threadIdx.y;
  r = blockIdx.y * kTile + threadIdx.x;
#pragma unroll
  for (int k = 0; k < kTile; k += kRowsAtOnce) {
    if (r < rows && c + k < cols) {
      out[(c + k) * rows + r] = tile[threadIdx.x][threadIdx.y + k];
    }
  }
}
