// Four weights at a time where rows start at a multiple of four bytes.
// launch: quantized_matvec grid=(rows) block=(64)
__global__ void quantized_matvec(const signed char* __restrict__ weight,
                                 const float* __restrict__ scale,
                                 const float* __restrict__ x,
                                 float* __restrict__ out, int rows, int cols) {
  __shared__ float of_warp[2];
  const signed char* row = weight + blockIdx.x * cols;
  float sum = 0.0f;
  if (cols % 4 == 0) {
    const char4* row4 = reinterpret_cast<const char4*>(row);
    for (int c = threadIdx.x; c < cols / 4; c += blockDim.x) {
      char4 w = row4[c];
      const float* v = x + 4 * c;
      sum += w.x * v[0] + w.y * v[1] + w.z * v[2] + w.w * v[3];
    }
  } else {
    for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += row[c] * x[c];
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_down_sync(0xffffffff, sum, offset);
  }
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    out[blockIdx.x] = scale[blockIdx.x] * (of_warp[0] + of_warp[1]);
  }
}
