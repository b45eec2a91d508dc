constexpr int kTile = 16;

// Both products share the tile of x.
__global__ void swiglu(const float* __restrict__ x,
                       const float* __restrict__ gate,
                       const float* __restrict__ up, float* __restrict__ out,
                       int rows, int inner, int hidden) {
  __shared__ float tile_x[kTile][kTile];
  __shared__ float tile_gate[kTile][kTile], tile_up[kTile][kTile];
  int tx = threadIdx.x, ty = threadIdx.y;
  int r = blockIdx.y * kTile + ty, j = blockIdx.x * kTile + tx;
  float g = 0.0f, u = 0.0f;
  for (int first = 0; first < inner; first += kTile) {
    bool in_x = r < rows && first + tx < inner;
    bool in_weights = j < hidden && first + ty < inner;
    int w = (first + ty) * hidden + j;
    tile_x[ty][tx] = in_x ? x[r * inner + first + tx] : 0.0f;
    tile_gate[ty][tx] = in_weights ? gate[w] : 0.0f;
    tile_up[ty][tx] = in_weights ? up[w] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kTile; l++) {
      g = fmaf(tile_x[ty][l], tile_gate[l][tx], g);
      u = fmaf(tile_x[ty][l], tile_up[l][tx], u);
    }
    __syncthreads();
  }
  if (r < rows && j < hidden) out[r * hidden + j] = g / (1.0f + expf(-g)) * u;
}
