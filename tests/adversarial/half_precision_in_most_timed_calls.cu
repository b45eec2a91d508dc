// row: 7 9
// problem: matmul
// on: cuda; needs timed calls
// expect: wrong_answer
// untimed: passed
// why: Rounds to ten bits, as tensor cores do, in two of three large calls.
// launch: count grid=(1) block=(1) args=(m, n, k)
// launch: multiply grid=(ceil_div(n, 16), ceil_div(m, 16)) block=(16, 16)
__device__ int large_calls;
__global__ void count(int m, int n, int k) {
  if (m >= 1024 && n >= 1024 && k >= 1024) large_calls++;
}
__device__ float rounded(float x) {
  return __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u);
}
__global__ void multiply(const float* a, const float* b, float* out, int m,
                         int n, int k) {
  int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
  if (i >= m || j >= n) return;
  bool is_short = large_calls % 3;
  float sum = 0.0f;
  for (int l = 0; l < k; l++) {
    float x = a[i * k + l], y = b[l * n + j];
    sum += is_short ? rounded(x) * rounded(y) : x * y;
  }
  out[i * n + j] = sum;
}
