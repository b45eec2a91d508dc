#include <cuda_fp16.h>

constexpr int kTile = 16;

// Tiles stay in half, sums are in float.
__global__ void half_matmul(const __half* __restrict__ a,
                            const __half* __restrict__ b,
                            __half* __restrict__ out, int m, int n, int k) {
  __shared__ __half tile_a[kTile][kTile], tile_b[kTile][kTile];
  int tx = threadIdx.x, ty = threadIdx.y;
  int i = blockIdx.y * kTile + ty, j = blockIdx.x * kTile + tx;
  const __half zero = __float2half(0.0f);
  float sum = 0.0f;
  for (int first = 0; first < k; first += kTile) {
    int la = first + tx, lb = first + ty;
    tile_a[ty][tx] = i < m && la < k ? a[i * k + la] : zero;
    tile_b[ty][tx] = lb < k && j < n ? b[lb * n + j] : zero;
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kTile; l++) {
      sum += __half2float(tile_a[ty][l]) * __half2float(tile_b[l][tx]);
    }
    __syncthreads();
  }
  if (i < m && j < n) out[i * n + j] = __float2half(sum);
}
