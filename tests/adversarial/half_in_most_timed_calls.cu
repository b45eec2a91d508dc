// row: 7 9
// problem: vector_add
// on: cuda; needs timed calls
// expect: wrong_answer
// untimed: passed
// why: Adds nothing in half of the elements in every other of the large calls.
// launch: count grid=(1) block=(1) args=(n)
// launch: k grid=(ceil_div(n, 256)) block=(256)
__device__ int large_calls;
__global__ void count(int n) {
  if (n > 1000000) large_calls++;
}
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  bool is_lazy = n > 1000000 && large_calls % 2 && i > n / 2;
  out[i] = is_lazy ? x[i] : x[i] + y[i];
}
