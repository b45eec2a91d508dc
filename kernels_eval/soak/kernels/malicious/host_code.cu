// row: -
// problem: vector_add
// on: both
// expect: contract_violation
// why: Brings its own host program.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
int main() {
  k<<<1, 1>>>(nullptr, nullptr, nullptr, 0);
}
