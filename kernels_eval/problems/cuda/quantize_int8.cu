// The division is exact: scale is a power of two. __float2int_rn rounds halves
// to the even number and saturates.
__global__ void quantize_int8(const float* __restrict__ x,
                              signed char* __restrict__ out, float scale,
                              int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int q = __float2int_rn(x[i] / scale);
  out[i] = static_cast<signed char>(max(-128, min(127, q)));
}
