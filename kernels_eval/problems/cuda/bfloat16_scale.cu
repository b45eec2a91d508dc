#include <cuda_bf16.h>

__global__ void bfloat16_scale(const __nv_bfloat16* __restrict__ x,
                               __nv_bfloat16* __restrict__ out, float alpha,
                               int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __float2bfloat16(alpha * __bfloat162float(x[i]));
}
