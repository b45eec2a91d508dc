__global__ void rgb_to_gray(const unsigned char* __restrict__ rgb,
                            float* __restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  uchar3 pixel = reinterpret_cast<const uchar3*>(rgb)[i];
  out[i] = 0.299f * pixel.x + 0.587f * pixel.y + 0.114f * pixel.z;
}
