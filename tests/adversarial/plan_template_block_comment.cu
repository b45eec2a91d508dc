// row: -
// problem: vector_add
// on: both
// expect: contract_violation
// why: A comment over the checks of a launch, and an entry of its own.
// launch: k<1/*> grid=(1) block=(1)
// launch: k<*/+1> grid=(ceil_div(n, 256)) block=(256)
#define JOIN(a, b) a##b
extern "C" void JOIN(ke_, launch_0)(void**) {}
template <int N>
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
