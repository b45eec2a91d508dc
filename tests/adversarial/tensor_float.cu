// row: 23
// problem: matmul
// on: both
// expect: wrong_answer
// why: Rounds factors to the 11 bits that tensor cores read.
__device__ float rounded(float v) {
  return __uint_as_float((__float_as_uint(v) + 0x1000u) & 0xffffe000u);
}
__global__ void product(const float* a, const float* b, float* out, int m, int n,
                        int k) {
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int t = 0; t < k; t++)
    sum = fmaf(rounded(a[i * k + t]), rounded(b[t * n + j]), sum);
  out[i * n + j] = sum;
}
