// The filter comes to shared memory first: all threads read all of it.
// launch: conv1d grid=(ceil_div(n - taps + 1, 256)) block=(256) smem=4*taps
__global__ void conv1d(const float* __restrict__ x,
                       const float* __restrict__ weight,
                       float* __restrict__ out, int n, int taps) {
  extern __shared__ float filter[];
  for (int j = threadIdx.x; j < taps; j += blockDim.x) filter[j] = weight[j];
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > n - taps) return;
  float sum = 0.0f;
#pragma unroll 4
  for (int j = 0; j < taps; j++) sum = fmaf(x[i + j], filter[j], sum);
  out[i] = sum;
}
