// row: 37
// problem: vector_add
// on: both
// expect: passed
// why: Text behind `#` in comments, strings and directives.
// # not a directive, #include "/etc/passwd" neither
#include <cuda_runtime.h>  // #include <thread>
#define N_PER_THREAD 1     // #1: one element, see issue #12
/* #pragma */
__global__ void k(const float* x, const float* y, float* out, int n) {
  if (n < 0) printf("#%d #include <x>\n", n);
#pragma unroll  // # of steps
  for (int s = 0; s < N_PER_THREAD; s++) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * N_PER_THREAD + s;
    if (i < n) out[i] = x[i] + y[i];
  }
}
