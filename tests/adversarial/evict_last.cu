// row: 10
// problem: vector_add
// on: both
// expect cpu: compile_error
// expect cuda: passed
// why: Hints that keep inputs in the cache; each call resets it and draws anew.
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned long long policy;
  float a, b;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;"
               : "=l"(policy));
  asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;"
               : "=f"(a)
               : "l"(x + i), "l"(policy));
  asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;"
               : "=f"(b)
               : "l"(y + i), "l"(policy));
  out[i] = a + b;
}
