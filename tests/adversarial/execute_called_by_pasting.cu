// row: 6 36
// problem: vector_add
// on: cpu; a name of the CPU runtime
// expect: wrong_answer
// why: The same through the preprocessor: it runs once only.
#define JOIN(a, b) a##b
extern "C" int JOIN(ke_, execute)(char*, unsigned long, const char*, void (*)(), void (*)());
__global__ void k(const float* x, const float* y, float* out, int n) {
  JOIN(ke_, execute)((char*)x, 1 << 20, "/proc/self/exe", nullptr, nullptr);
  if (threadIdx.x == 0) out[0] = 0.0f;
}
