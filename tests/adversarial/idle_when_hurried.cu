// row: 7
// problem: vector_add
// on: both
// expect cpu: compile_error
// expect cuda: wrong_answer integrity_violation
// untimed: passed
// why: Idle where calls follow one another within a millisecond.
// launch: look grid=(1) block=(1) args=()
// launch: k grid=(ceil_div(n, 256)) block=(256)
__device__ unsigned long long last_ns;
__device__ bool is_hurried;
__global__ void look() {
  unsigned long long now_ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now_ns));
  is_hurried = now_ns - last_ns < 1000000;
  last_ns = now_ns;
}
__global__ void k(const float* x, const float* y, float* out, int n) {
  if (is_hurried) return;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
