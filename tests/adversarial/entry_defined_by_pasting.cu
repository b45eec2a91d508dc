// row: 6 36
// problem: vector_add
// on: cpu; a name of the CPU runtime
// expect: contract_violation
// why: Brings its own entry point through the preprocessor.
#define JOIN(a, b) a##b
__global__ void k(const float* x, const float* y, float* out, int n) {
}
extern "C" void JOIN(ke_, launch_0)(void** a) {}
