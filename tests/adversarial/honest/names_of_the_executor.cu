// row: 37
// problem: vector_add
// on: both
// expect: passed
// why: Macros with plain names, which an executor must not use for itself.
#define type float
#define value 2
#define count 256
#define before 0
__global__ void k(const float* x, const float* y, float* out, int n) {
  __shared__ type s[count];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] : before;
  __syncthreads();
  if (i < n) out[i] = s[threadIdx.x] * value / value + y[i];
}
