// launch: row_argmax grid=(rows) block=(128)
struct Best {
  float value;
  int column;
};

// The larger value; of two equal ones the smaller column.
__device__ Best better(Best a, Best b) {
  if (b.value > a.value) return b;
  if (b.value == a.value && b.column < a.column) return b;
  return a;
}

__global__ void row_argmax(const float* __restrict__ x, int* __restrict__ out,
                           int rows, int cols) {
  __shared__ Best best[128];
  const float* row = x + blockIdx.x * cols;
  Best mine = {-INFINITY, cols};
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    mine = better(mine, Best{row[c], c});
  }
  best[threadIdx.x] = mine;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      best[threadIdx.x] = better(best[threadIdx.x], best[threadIdx.x + half]);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = best[0].column;
}
