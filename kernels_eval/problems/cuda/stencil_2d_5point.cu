constexpr int kTile = 16;

__device__ int inside(int i, int size) { return min(max(i, 0), size - 1); }

__global__ void stencil_2d_5point(const float* __restrict__ x,
                                  float* __restrict__ out, float alpha,
                                  int rows, int cols) {
  __shared__ float tile[kTile + 2][kTile + 2];
  int first_row = blockIdx.y * kTile - 1, first_col = blockIdx.x * kTile - 1;
  // 18 x 18 elements for 16 x 16 threads: some load two.
  for (int i = threadIdx.y; i < kTile + 2; i += kTile) {
    for (int j = threadIdx.x; j < kTile + 2; j += kTile) {
      int r = inside(first_row + i, rows), c = inside(first_col + j, cols);
      tile[i][j] = x[r * cols + c];
    }
  }
  __syncthreads();
  int r = first_row + 1 + threadIdx.y, c = first_col + 1 + threadIdx.x;
  if (r >= rows || c >= cols) return;
  int i = threadIdx.y + 1, j = threadIdx.x + 1;
  float centre = tile[i][j];
  float around =
      tile[i - 1][j] + tile[i + 1][j] + tile[i][j - 1] + tile[i][j + 1];
  out[r * cols + c] = centre + alpha * (around - 4.0f * centre);
}
