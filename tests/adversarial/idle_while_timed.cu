// row: 7 9
// problem: vector_add
// on: cuda; needs timed calls
// expect: wrong_answer integrity_violation
// why: Honest for as many calls as there are cases; idle while it is timed.
// launch: count grid=(1) block=(1) args=()
// launch: k grid=(ceil_div(n, 256)) block=(256)
__device__ int calls;
__global__ void count() { calls++; }
__global__ void k(const float* x, const float* y, float* out, int n) {
  if (calls > 12) return;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
