// row: 5 6
// problem: vector_add
// on: cpu; the C library of the host
// expect: runtime_error
// why: Defines what ends a faulty run, so that it might go on.
#define JOIN(a, b) a##b
extern "C" void JOIN(_ex, it)(int) {}
extern "C" int JOIN(vsn, printf)(char*, unsigned long, const char*, void*) {
  return 0;
}
__global__ void k(const float* x, const float* y, float* out, int n) {
  out[(size_t(1) << 40) + threadIdx.x] = x[0];
}
