// One warp per row; four columns at a time where rows start at a multiple of 16
// bytes.
// launch: matvec grid=(ceil_div(rows, 4)) block=(32, 4)
__global__ void matvec(const float* __restrict__ a, const float* __restrict__ x,
                       float* __restrict__ out, int rows, int cols) {
  int r = blockIdx.x * blockDim.y + threadIdx.y;
  if (r >= rows) return;
  const float* row = a + r * cols;
  float sum = 0.0f;
  if (cols % 4 == 0) {
    const float4* row4 = reinterpret_cast<const float4*>(row);
    const float4* x4 = reinterpret_cast<const float4*>(x);
    for (int c = threadIdx.x; c < cols / 4; c += 32) {
      float4 u = row4[c], v = x4[c];
      sum += u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
    }
  } else {
    for (int c = threadIdx.x; c < cols; c += 32) sum += row[c] * x[c];
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_down_sync(0xffffffff, sum, offset);
  }
  if (threadIdx.x == 0) out[r] = sum;
}
