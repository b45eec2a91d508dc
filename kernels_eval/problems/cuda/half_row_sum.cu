#include <cuda_fp16.h>

__global__ void half_row_sum(const __half* __restrict__ x,
                             __half* __restrict__ out, int rows, int cols) {
  __shared__ float partial[256];
  const __half* row = x + blockIdx.x * cols;
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    sum += __half2float(row[c]);
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = __float2half(partial[0]);
}
