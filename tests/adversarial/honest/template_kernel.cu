// row: 37
// problem: vector_add
// on: both
// expect: passed
// why: A template with a default, launched by its arguments.
// launch: k<4, float> grid=(ceil_div(n, 1024)) block=(256)
template <int kPerThread, typename T = float>
__global__ __launch_bounds__(256) void k(const T* x, const T* y, T* out,
                                         int n) {
#pragma unroll
  for (int s = 0; s < kPerThread; s++) {
    int i = (blockIdx.x * kPerThread + s) * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + y[i];
  }
}
