// row: -
// problem: vector_add
// on: cpu; checks that precede g++
// expect: contract_violation
// why: Switches the check of parameter types off.
#define static_assert(...)
__global__ void k(const double* x, const float* y, float* out, int n) {}
