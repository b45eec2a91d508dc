// row: 37
// problem: vector_add
// on: both
// expect: passed
// why: Variables with names that the C library has too.
__device__ unsigned times[256];
__device__ float environ, signal;
__constant__ float index[2] = {0.0f, 1.0f};
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicAdd(&times[threadIdx.x], 1u);
  if (n < 0) environ = signal;
  out[i] = x[i] * index[1] + y[i];
}
