// Integer intrinsics, bit casts, conversions and cached loads and stores.
#pragma once

#define INT_MAX __INT_MAX__
#define INT_MIN (-__INT_MAX__ - 1)
#define UINT_MAX (__INT_MAX__ * 2U + 1U)
#define LLONG_MAX __LONG_LONG_MAX__
#define LLONG_MIN (-__LONG_LONG_MAX__ - 1LL)
#define ULLONG_MAX (__LONG_LONG_MAX__ * 2ULL + 1ULL)
#define LONG_MAX __LONG_MAX__
#define CHAR_BIT __CHAR_BIT__
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define INT8_MAX 127
#define INT8_MIN (-128)
#define UINT8_MAX 255
#define INT16_MAX 32767
#define INT32_MAX INT_MAX
#define INT32_MIN INT_MIN
#define UINT32_MAX UINT_MAX
#define INT64_MAX __INT64_MAX__
#define INT64_MIN (-__INT64_MAX__ - 1)
#define UINT64_MAX __UINT64_MAX__
#define SIZE_MAX __SIZE_MAX__

KE_INLINE int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
KE_INLINE unsigned __float_as_uint(float x) {
  return __builtin_bit_cast(unsigned, x);
}
KE_INLINE float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
KE_INLINE float __uint_as_float(unsigned x) {
  return __builtin_bit_cast(float, x);
}
KE_INLINE long long __double_as_longlong(double x) {
  return __builtin_bit_cast(long long, x);
}
KE_INLINE double __longlong_as_double(long long x) {
  return __builtin_bit_cast(double, x);
}
KE_INLINE int __double2hiint(double x) {
  return (int)(__double_as_longlong(x) >> 32);
}
KE_INLINE int __double2loint(double x) { return (int)__double_as_longlong(x); }

KE_INLINE double __hiloint2double(int high, int low) {
  return __longlong_as_double((long long)high << 32 | (unsigned)low);
}

KE_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
KE_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
KE_INLINE int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
KE_INLINE int __clzll(long long x) {
  return x ? __builtin_clzll((unsigned long long)x) : 64;
}
KE_INLINE int __ffs(int x) { return __builtin_ffs(x); }
KE_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
KE_INLINE unsigned __brev(unsigned x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
KE_INLINE unsigned long long __brevll(unsigned long long x) {
  return (unsigned long long)__brev((unsigned)x) << 32 |
         __brev((unsigned)(x >> 32));
}
KE_INLINE int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
KE_INLINE unsigned __umul24(unsigned a, unsigned b) {
  return (a & 0xffffffu) * (b & 0xffffffu);
}
KE_INLINE int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
KE_INLINE unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)a * b >> 32);
}
KE_INLINE unsigned long long __umul64hi(unsigned long long a,
                                        unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
KE_INLINE long long __mul64hi(long long a, long long b) {
  return (long long)((__int128)a * b >> 64);
}
KE_INLINE unsigned __usad(unsigned a, unsigned b, unsigned c) {
  return c + (a > b ? a - b : b - a);
}
KE_INLINE unsigned __sad(int a, int b, unsigned c) {
  return c + (unsigned)(a > b ? a - b : b - a);
}
KE_INLINE int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
KE_INLINE int __rhadd(int a, int b) {
  return (int)(((long long)a + b + 1) >> 1);
}
KE_INLINE unsigned __uhadd(unsigned a, unsigned b) {
  return (unsigned)(((unsigned long long)a + b) >> 1);
}
KE_INLINE unsigned __urhadd(unsigned a, unsigned b) {
  return (unsigned)(((unsigned long long)a + b + 1) >> 1);
}
KE_INLINE unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s) {
  s &= 31;
  return s ? hi << s | lo >> (32 - s) : hi;
}
KE_INLINE unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned s) {
  s &= 31;
  return s ? hi << (32 - s) | lo >> s : lo;
}
KE_INLINE unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned s) {
  return s >= 32 ? lo : __funnelshift_l(lo, hi, s);
}
KE_INLINE unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned s) {
  return s >= 32 ? hi : __funnelshift_r(lo, hi, s);
}
KE_INLINE unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
  unsigned long long v = (unsigned long long)b << 32 | a;
  unsigned r = 0;
  for (int i = 0; i < 4; i++) {
    unsigned byte = (unsigned)(v >> 8 * (s >> 4 * i & 7) & 255);
    // The selector's top bit asks for the byte's sign, eight times.
    if (s >> 4 * i & 8) byte = byte & 128 ? 255 : 0;
    r |= byte << 8 * i;
  }
  return r;
}
// Sums of products of the bytes of a word.
#define KE_DP4A(T, Byte)                                  \
  KE_INLINE T __dp4a(T a, T b, T c) {                     \
    for (int i = 0; i < 4; i++)                           \
      c += (T)(Byte)(a >> 8 * i) * (T)(Byte)(b >> 8 * i); \
    return c;                                             \
  }
KE_DP4A(int, signed char)
KE_DP4A(unsigned, unsigned char);
#undef KE_DP4A
KE_INLINE int __dp2a_lo(int a, int b, int c) {
  return c + (short)a * (signed char)b + (a >> 16) * (signed char)(b >> 8);
}
KE_INLINE int __dp2a_hi(int a, int b, int c) {
  return __dp2a_lo(a, b >> 16, c);
}
// Position of the n-th set bit counted from `base`, upwards or downwards.
KE_INLINE unsigned __fns(unsigned mask, unsigned base, int n) {
  if (n == 0) return mask >> base & 1 ? base : ~0u;
  int step = n > 0 ? 1 : -1, left = n > 0 ? n : -n;
  for (int i = (int)base; i >= 0 && i < 32; i += step)
    if ((mask >> i & 1) && --left == 0) return (unsigned)i;
  return ~0u;
}

#define KE_CACHED(suffix)                \
  template <class T>                     \
  KE_INLINE T __ld##suffix(const T* p) { \
    return *p;                           \
  }
KE_CACHED(g)
KE_CACHED(ca)
KE_CACHED(cg)
KE_CACHED(cs) KE_CACHED(lu) KE_CACHED(cv);
#undef KE_CACHED
#define KE_CACHED(suffix)                  \
  template <class T>                       \
  KE_INLINE void __st##suffix(T* p, T v) { \
    *p = v;                                \
  }
KE_CACHED(wb) KE_CACHED(cg) KE_CACHED(cs) KE_CACHED(wt)
#undef KE_CACHED
