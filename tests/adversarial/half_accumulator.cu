// row: 23
// problem: matmul
// on: both
// expect: wrong_answer
// why: Adds up in half precision.
#include <cuda_fp16.h>
__global__ void product(const float* a, const float* b, float* out, int m, int n,
                        int k) {
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m || j >= n) return;
  __half sum = __float2half(0.0f);
  for (int t = 0; t < k; t++)
    sum = __hadd(sum, __hmul(__float2half(a[i * k + t]),
                             __float2half(b[t * n + j])));
  out[i * n + j] = __half2float(sum);
}
