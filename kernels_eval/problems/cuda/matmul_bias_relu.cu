// Tiles in dynamic shared memory: first that of a, then that of b.
// launch: linear grid=(ceil_div(n,16), ceil_div(m,16)) block=(16,16) smem=2048
__global__ void linear(const float* __restrict__ a, const float* __restrict__ b,
                       const float* __restrict__ bias, float* __restrict__ out,
                       int m, int n, int k) {
  extern __shared__ float tiles[];
  int side = blockDim.x, tx = threadIdx.x, ty = threadIdx.y;
  float* tile_a = tiles;
  float* tile_b = tiles + side * side;
  int i = blockIdx.y * side + ty;
  int j = blockIdx.x * side + tx;
  float sum = j < n ? bias[j] : 0.0f;
  for (int first = 0; first < k; first += side) {
    tile_a[ty * side + tx] =
        i < m && first + tx < k ? a[i * k + first + tx] : 0.0f;
    tile_b[ty * side + tx] =
        j < n && first + ty < k ? b[(first + ty) * n + j] : 0.0f;
    __syncthreads();
    for (int l = 0; l < side; l++) {
      sum += tile_a[ty * side + l] * tile_b[l * side + tx];
    }
    __syncthreads();
  }
  if (i < m && j < n) out[i * n + j] = fmaxf(sum, 0.0f);
}
