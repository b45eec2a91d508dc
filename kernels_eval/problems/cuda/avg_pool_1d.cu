__global__ void avg_pool_1d(const float* __restrict__ x,
                            float* __restrict__ out, int rows, int cols) {
  constexpr int kWindow = 4;
  int windows = (cols + kWindow - 1) / kWindow;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int r = blockIdx.y;
  if (i >= windows) return;
  int first = kWindow * i, end = min(first + kWindow, cols);
  const float* row = x + r * cols;
  float sum = 0.0f;
  if (cols % kWindow == 0) {  // then every row starts at a multiple of 16 bytes
    float4 v = *reinterpret_cast<const float4*>(row + first);
    sum = (v.x + v.y) + (v.z + v.w);
  } else {
    for (int c = first; c < end; c++) sum += row[c];
  }
  out[r * windows + i] = sum / (end - first);
}
