#include <cuda_fp16.h>

__global__ void half_gelu(const __half* __restrict__ x,
                          __half* __restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = __half2float(x[i]);
  float inner = 0.7978845608f * (v + 0.044715f * v * v * v);
  out[i] = __float2half(0.5f * v * (1.0f + tanhf(inner)));
}
