// Two elements per thread, half a grid apart, so that both loads are coalesced
// and in flight together.
// launch: silu grid=(ceil_div(n, 512)) block=(256)
__global__ void silu(const float* __restrict__ x, float* __restrict__ out,
                     int n) {
  int base = blockIdx.x * 512 + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 2; k++) {
    int i = base + k * 256;
    if (i < n) {
      float v = x[i];
      out[i] = v / (1.0f + expf(-v));
    }
  }
}
