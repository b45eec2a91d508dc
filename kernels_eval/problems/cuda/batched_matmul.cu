// One thread per result, straight from global memory: the matrices of a batch
// are small.
__global__ void batched_matmul(const float* __restrict__ a,
                               const float* __restrict__ b,
                               float* __restrict__ out, int batch, int m, int n,
                               int k) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int s = blockIdx.z;
  if (i >= m || j >= n) return;
  const float* row = a + (s * m + i) * k;
  const float* column = b + s * k * n + j;
  float sum = 0.0f;
  for (int l = 0; l < k; l++) sum = fmaf(row[l], column[l * n], sum);
  out[(s * m + i) * n + j] = sum;
}
