// Four elements per thread. Buffers start at a multiple of 16 bytes, so only
// the last group can be incomplete.
// launch: relu grid=(ceil_div(n, 1024)) block=(256)
__global__ void relu(const float* __restrict__ x, float* __restrict__ out,
                     int n) {
  int first = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (first + 3 < n) {
    float4 v = *reinterpret_cast<const float4*>(x + first);
    v.x = fmaxf(v.x, 0.0f);
    v.y = fmaxf(v.y, 0.0f);
    v.z = fmaxf(v.z, 0.0f);
    v.w = fmaxf(v.w, 0.0f);
    *reinterpret_cast<float4*>(out + first) = v;
  } else {
    for (int i = first; i < n; i++) out[i] = fmaxf(x[i], 0.0f);
  }
}
