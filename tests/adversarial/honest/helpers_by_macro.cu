// row: 37
// problem: vector_add
// on: both
// expect: passed
// why: Device functions through macros, with a name in pieces.
#define CALL(name, v) device_##name(v)
__device__ float device_same(float v) { return v; }
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = CALL(same, x[i]) + y[i];
}
