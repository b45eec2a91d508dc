// row: -
// problem: exclusive_scan
// on: cpu; a GPU mostly starts blocks in order, so that chance decides
// expect: wrong_answer
// why: Takes it that blocks add to the sum in the order of their numbers.
__device__ int running;
// scratch: unused int32 (1)
// launch: clear grid=(1) block=(1) args=(unused)
// launch: scan grid=(ceil_div(n, 256)) block=(256) args=(count, out, n)
__global__ void clear(int* unused) { running = 0; }
__global__ void scan(const int* count, int* out, int n) {
  __shared__ int s[256];
  __shared__ int base;
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  s[t] = i < n ? count[i] : 0;
  __syncthreads();
  for (int k = 1; k < 256; k *= 2) {
    int v = t >= k ? s[t - k] : 0;
    __syncthreads();
    s[t] += v;
    __syncthreads();
  }
  if (t == 0) base = atomicAdd(&running, s[255]);
  __syncthreads();
  if (i < n) out[i] = base + (t ? s[t - 1] : 0);
}
