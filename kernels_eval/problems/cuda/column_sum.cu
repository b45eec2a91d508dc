// A block takes 32 columns: neighbouring threads read neighbouring columns, and
// eight rows at a time are added up in shared memory at the end.
// launch: column_sum grid=(ceil_div(cols, 32)) block=(32, 8)
__global__ void column_sum(const float* __restrict__ x, float* __restrict__ out,
                           int rows, int cols) {
  __shared__ float partial[8][32];
  int c = blockIdx.x * 32 + threadIdx.x;
  float sum = 0.0f;
  if (c < cols) {
    for (int r = threadIdx.y; r < rows; r += 8) sum += x[r * cols + c];
  }
  partial[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && c < cols) {
#pragma unroll
    for (int k = 1; k < 8; k++) sum += partial[k][threadIdx.x];
    out[c] = sum;
  }
}
