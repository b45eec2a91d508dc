// row: 8
// problem: vector_add
// on: cuda; needs a second call with the same buffers
// expect: wrong_answer
// untimed: passed
// why: Replays what it computed last for the same address.
// launch: k grid=(ceil_div(n, 256)) block=(256)
// launch: remember grid=(1) block=(1) args=(x, n)
__device__ float saved[1 << 24];
__device__ const float* last;
__device__ int last_n;
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || i >= 1 << 24) return;
  out[i] = last == x ? saved[i] : x[i] + y[i];
  saved[i] = out[i];
}
__global__ void remember(const float* x, int n) { last = x; }
