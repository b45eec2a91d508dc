// The result is an accumulator of atomics, so a first launch sets it to 0.
// launch: clear grid=(1) block=(1) args=(out)
// launch: mse_loss grid=(ceil_div(n, 512)) block=(128)
__global__ void clear(float* out) { out[0] = 0.0f; }

__global__ void mse_loss(const float* __restrict__ prediction,
                         const float* __restrict__ target, float* out, int n) {
  __shared__ float partial[128];
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x) {
    float difference = prediction[i] - target[i];
    sum += difference * difference;
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, partial[0] / n);
}
