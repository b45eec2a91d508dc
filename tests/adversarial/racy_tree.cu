// row: 34
// problem: row_sum
// on: cpu; a GPU needs its race detector to see it
// expect: runtime_error
// why: A tree without barriers: right when threads happen to wait.
__global__ void k(const float* x, float* out, int rows, int cols) {
  __shared__ float s[256];
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    sum += x[blockIdx.x * cols + c];
  s[threadIdx.x] = sum;
  for (int half = 128; half > 0; half /= 2)
    if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
  if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}
