constexpr int kTile = 16;

// The result is symmetric: blocks below the diagonal have nothing to do, those
// above it write every element twice.
__global__ void gram(const float* __restrict__ a, float* __restrict__ out,
                     int rows, int cols) {
  if (blockIdx.y > blockIdx.x) return;  // the same for a whole block
  __shared__ float left[kTile][kTile], right[kTile][kTile];
  int i = blockIdx.y * kTile + threadIdx.y;
  int j = blockIdx.x * kTile + threadIdx.x;
  int left_col = blockIdx.y * kTile + threadIdx.x;
  float sum = 0.0f;
  for (int first = 0; first < rows; first += kTile) {
    int r = first + threadIdx.y;
    left[threadIdx.y][threadIdx.x] =
        r < rows && left_col < cols ? a[r * cols + left_col] : 0.0f;
    right[threadIdx.y][threadIdx.x] =
        r < rows && j < cols ? a[r * cols + j] : 0.0f;
    __syncthreads();
    for (int l = 0; l < kTile; l++) {
      sum = fmaf(left[l][threadIdx.y], right[l][threadIdx.x], sum);
    }
    __syncthreads();
  }
  if (i >= cols || j >= cols) return;
  out[i * cols + j] = sum;
  if (blockIdx.x != blockIdx.y) out[j * cols + i] = sum;
}
