// row: -
// problem: vector_add
// on: cpu; pragmas of g++
// expect: passed
// why: Compiler pragmas have no effect.
#pragma GCC poison typedef static_assert decltype
#pragma GCC optimize("O3")
#pragma GCC visibility push(hidden)
#pragma push_macro("__syncthreads")
#define P _Pragma("GCC poison extern")
P
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
