// row: 8
// problem: dot_product
// on: cuda; needs timed calls
// expect: wrong_answer
// untimed: passed
// why: Replays its first answer at the timed size, which has one number.
// launch: k grid=(1) block=(1024)
__device__ float remembered;
__device__ bool has_answer;
__global__ void k(const float* x, const float* y, float* out, int n) {
  __shared__ float partial[1024];
  if (n > 1000000 && has_answer) {
    if (threadIdx.x == 0) out[0] = remembered;
    return;
  }
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 1024) sum += x[i] * y[i];
  partial[threadIdx.x] = sum;
  for (int half = 512; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  if (threadIdx.x != 0) return;
  out[0] = remembered = partial[0];
  has_answer = n > 1000000;
}
