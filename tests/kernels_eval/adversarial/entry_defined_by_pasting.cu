// expect: contract_violation
// Brings its own entry point through the preprocessor.
#define JOIN(a, b) a##b
__global__ void k(const float* x, const float* y, float* out, int n) {
}
extern "C" void JOIN(ke_, launch_0)(void** a) {}
