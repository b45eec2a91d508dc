// row: 7 9
// problem: vector_add
// on: cuda; needs timed calls
// expect: wrong_answer
// untimed: passed
// why: Works in every third of the large calls: one checked call may be such a one.
// launch: count grid=(1) block=(1) args=(n)
// launch: k grid=(ceil_div(n, 256)) block=(256)
__device__ int large_calls;
__global__ void count(int n) {
  if (n > 1000000) large_calls++;
}
__global__ void k(const float* x, const float* y, float* out, int n) {
  if (n > 1000000 && large_calls % 3) return;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
