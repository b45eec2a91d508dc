// expect: contract_violation
// Switches the check of parameter types off.
#define static_assert(...)
__global__ void k(const double* x, const float* y, float* out, int n) {}
