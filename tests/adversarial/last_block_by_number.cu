// row: -
// problem: dot_product
// on: cpu; a GPU mostly starts blocks in order, so that chance decides
// expect: wrong_answer
// why: Takes it that the block with the last number ends last.
__device__ float total;
// launch: add grid=(ceil_div(n, 256)) block=(256)
__global__ void add(const float* x, const float* y, float* out, int n) {
  __shared__ float s[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  s[t] = i < n ? x[i] * y[i] : 0.0f;
  __syncthreads();
  for (int k = 128; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t > 0) return;
  atomicAdd(&total, s[0]);
  if (blockIdx.x == gridDim.x - 1) out[0] = atomicExch(&total, 0.0f);
}
