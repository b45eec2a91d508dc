// row: 6
// problem: vector_add
// on: cpu; code of the host's processor
// machine: x86_64
// expect: integrity_violation runtime_error
// why: Jumps to the bytes of a system call in the mathematics library, if any.
struct Word {
  unsigned char v[16];
};
// Objects of bytes that go to a recursive function, or come from one, escape
// the instrumentation.
__device__ Word same(Word w, int n) { return n ? same(w, n - 1) : w; }
__device__ Word read(const void* p) { return same(*(const Word*)p, 0); }
__device__ void write(void* p, Word w) { *(Word*)p = same(w, 0); }
__global__ void k(const float* x, const float* y, float* out, int n) {
  const unsigned char* p = (const unsigned char*)&y1;
  for (int i = 0; i < 1 << 20; i++, p++) {
    Word w = read(p);
    if (w.v[0] != 0x0f || w.v[1] != 0x05) continue;
    // A call with `...` leaves the number of its floating-point arguments in
    // the register that holds the number of the call: 0, read.
    ((long (*)(...))p)(0, x, 1);
  }
}
