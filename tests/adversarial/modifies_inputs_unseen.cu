// row: 17
// problem: vector_add
// on: both
// expect cpu: integrity_violation
// expect cuda: integrity_violation runtime_error
// why: The same past the run-time checks: the judge compares inputs afterwards.
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
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) {
    write((void*)x, Word{});
    write((void*)y, Word{});
  }
  __syncthreads();
  if (i < n) out[i] = x[i] + y[i];
}
