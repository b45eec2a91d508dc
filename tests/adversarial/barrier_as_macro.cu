// row: 34
// problem: vector_add
// on: cpu; a GPU needs its race detector to see it
// expect: runtime_error
// why: Defines the barrier away: the race is found all the same.
#define __syncthreads()
__global__ void k(const float* x, const float* y, float* out, int n) {
  __shared__ float s[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] + y[i] : 0.0f;
  __syncthreads();
  int other = threadIdx.x ^ 1;
  i = blockIdx.x * blockDim.x + other;
  if (i < n) out[i] = s[other];
}
