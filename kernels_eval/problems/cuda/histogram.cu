// Each block counts in shared memory and adds its counts to the result once.
// launch: clear grid=(ceil_div(bins, 256)) block=(256) args=(out, bins)
// launch: histogram grid=(ceil_div(n, 1024)) block=(256) smem=4*bins
__global__ void clear(int* out, int bins) {
  int b = blockIdx.x * blockDim.x + threadIdx.x;
  if (b < bins) out[b] = 0;
}

__global__ void histogram(const int* __restrict__ x, int* out, int n,
                          int bins) {
  extern __shared__ int counts[];
  for (int b = threadIdx.x; b < bins; b += blockDim.x) counts[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x) {
    int b = x[i];
    if (b >= 0 && b < bins) atomicAdd(&counts[b], 1);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < bins; b += blockDim.x) {
    if (counts[b] > 0) atomicAdd(&out[b], counts[b]);
  }
}
