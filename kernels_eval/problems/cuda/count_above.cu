// The counter starts with poison, so a launch of its own sets it to 0.
// launch: clear grid=(1) block=(1) args=(out)
// launch: count grid=(ceil_div(n, 256)) block=(256) args=(x, out, threshold, n)
__global__ void clear(int* out) { *out = 0; }

__global__ void count(const float* __restrict__ x, int* out, float threshold,
                      int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int in_block = __syncthreads_count(i < n && x[i] > threshold);
  if (threadIdx.x == 0) atomicAdd(out, in_block);
}
