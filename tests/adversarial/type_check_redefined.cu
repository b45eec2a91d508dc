// row: 36
// problem: vector_add
// on: cpu; the trailer of the CPU executor
// expect: contract_violation
// why: Puts its own test in the place of the one of parameter types.
#define JOIN(a, b) a##b
namespace JOIN(ke_, device) {
template <class, class>
struct always {
  static constexpr bool ke_value = true;
};
}  // namespace JOIN(ke_,device)
#define ke_fits always
__global__ void k(const double* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
