// row: 6
// problem: vector_add
// on: cpu; a name of the CPU runtime
// expect: contract_violation
// why: Brings its own entry point.
__global__ void k(const float* x, const float* y, float* out, int n) {
}
extern "C" void ke_launch_0(void** a) { ((float**)a[2])[0][0] = 1.0f; }
