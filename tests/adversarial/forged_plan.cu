// row: 6
// problem: vector_add
// on: cpu; the plan of the CPU runtime
// expect: wrong_answer
// why: Shortens the plan to no cases while it runs.
struct Word {
  unsigned char v[16];
};
// Objects of bytes that go to a recursive function, or come from one, escape
// the instrumentation.
__device__ Word same(Word w, int n) { return n ? same(w, n - 1) : w; }
__device__ Word read(const void* p) { return same(*(const Word*)p, 0); }
__device__ void write(void* p, Word w) { *(Word*)p = same(w, 0); }
union Mix {
  Word w;
  unsigned u[4];
};
__device__ unsigned first(Word w) {
  Mix m;
  m.w = w;
  return m.u[0];
}
__device__ Word words(unsigned a, unsigned b, unsigned c, unsigned d) {
  Mix m;
  m.u[0] = a;
  m.u[1] = b;
  m.u[2] = c;
  m.u[3] = d;
  return m.w;
}
__device__ unsigned* find_plan(const float* x) {
  // The plan lies at the start of the mapping, in front of the first buffer.
  const char* p = (const char*)((size_t)x & ~(size_t)4095);
  for (int pages = 0; pages < 1 << 14; pages++, p -= 4096)
    if (first(read(p)) == 0x4b455031) return (unsigned*)p;
  return nullptr;
}
__global__ void k(const float* x, const float* y, float* out, int n) {
  if (threadIdx.x || blockIdx.x) return;
  unsigned* plan = find_plan(x);
  write(plan, words(0x4b455031, 0, 0, 0));  // no cases
}
