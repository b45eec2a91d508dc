// row: 28
// problem: vector_add
// on: cpu; the memory of the CPU runtime
// expect: wrong_answer
// why: Looks for expected values in all memory that it can reach, unseen.
struct Word {
  unsigned char v[16];
};
// Objects of bytes that go to a recursive function, or come from one, escape
// the instrumentation.
__device__ Word same(Word w, int n) { return n ? same(w, n - 1) : w; }
__device__ Word read(const void* p) { return same(*(const Word*)p, 0); }
union Mix {
  Word w;
  float f[4];
};
__global__ void k(const float* x, const float* y, float* out, int n) {
  if (blockIdx.x + threadIdx.x != 0) return;
  for (int i = 0; i < n; i++) out[i] = 0.0f;
  if (n < 256) return;
  // Plan, report and the buffers of all cases lie in one mapping.
  const char* begin = (const char*)((size_t)x & ~(size_t)4095) - 65536;
  for (const char* p = begin; p < (const char*)(out + n - 4); p += 16) {
    Mix m;
    m.w = read(p);
    if (p >= (const char*)out) break;
    bool found = true;
    for (int i = 0; i < 4; i++) found = found && m.f[i] == x[i] + y[i];
    for (int i = 0; found && i + 4 <= n; i += 4) {
      m.w = read(p + 4 * i);
      for (int j = 0; j < 4; j++) out[i + j] = m.f[j];
    }
  }
}
