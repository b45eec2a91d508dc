// row: 37
// problem: vector_add
// on: both
// expect: passed
// why: `__launch_bounds__` stands where a name might.
__global__ void __launch_bounds__(256, 2)
    k(const float* __restrict__ x, const float* __restrict__ y,
      float* __restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
