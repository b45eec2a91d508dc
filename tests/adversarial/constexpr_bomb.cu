// row: -
// problem: vector_add
// on: both
// expect: timeout compile_error
// why: Makes the compiler compute.
constexpr int f() {
  int s = 0;
  for (int i = 0; i < 200000; i++)
    for (int j = 0; j < 200000; j++) s ^= i + j;
  return s;
}
static_assert(f() >= 0, "");
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
