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
#define UINT64_MAX __UINT64_MAX__
#define SIZE_MAX __SIZE_MAX__

namespace ke {
template <class To, class From>
KE_INLINE To bit_cast(From x) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  To y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
// Out-of-range conversions saturate and NaN gives 0, as on the device.
template <class To, class From>
KE_INLINE To saturate(From x, To low, To high) {
  if (x != x) return 0;
  if (x <= (From)low) return low;
  if (x >= (From)high) return high;
  return (To)x;
}
}  // namespace ke

static inline int __float_as_int(float x) { return ke::bit_cast<int>(x); }
static inline unsigned __float_as_uint(float x) {
  return ke::bit_cast<unsigned>(x);
}
static inline float __int_as_float(int x) { return ke::bit_cast<float>(x); }
static inline float __uint_as_float(unsigned x) {
  return ke::bit_cast<float>(x);
}
static inline long long __double_as_longlong(double x) {
  return ke::bit_cast<long long>(x);
}
static inline double __longlong_as_double(long long x) {
  return ke::bit_cast<double>(x);
}
static inline int __double2hiint(double x) {
  return (int)(__double_as_longlong(x) >> 32);
}
static inline int __double2loint(double x) {
  return (int)__double_as_longlong(x);
}

#define KE_CONVERT(m, r)                                                \
  static inline int __float2int_##m(float x) {                          \
    return ke::saturate<int>(r(x), INT_MIN, INT_MAX);                   \
  }                                                                     \
  static inline unsigned __float2uint_##m(float x) {                    \
    return ke::saturate<unsigned>(r(x), 0u, UINT_MAX);                  \
  }                                                                     \
  static inline long long __float2ll_##m(float x) {                     \
    return ke::saturate<long long>(r(x), LLONG_MIN, LLONG_MAX);         \
  }                                                                     \
  static inline int __double2int_##m(double x) {                        \
    return ke::saturate<int>(r(x), INT_MIN, INT_MAX);                   \
  }                                                                     \
  static inline long long __double2ll_##m(double x) {                   \
    return ke::saturate<long long>(r(x), LLONG_MIN, LLONG_MAX);         \
  }                                                                     \
  static inline float __int2float_##m(int x) { return (float)x; }       \
  static inline float __uint2float_##m(unsigned x) { return (float)x; } \
  static inline float __ll2float_##m(long long x) { return (float)x; }  \
  static inline float __double2float_##m(double x) { return (float)x; }
KE_CONVERT(rn, rint)
KE_CONVERT(rz, trunc)
KE_CONVERT(ru, ceil) KE_CONVERT(rd, floor)
#undef KE_CONVERT
    static inline double __int2double_rn(int x) {
  return x;
}

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) {
  return __builtin_popcountll(x);
}
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) {
  return x ? __builtin_clzll((unsigned long long)x) : 64;
}
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __brev(unsigned x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
static inline unsigned long long __brevll(unsigned long long x) {
  return (unsigned long long)__brev((unsigned)x) << 32 |
         __brev((unsigned)(x >> 32));
}
static inline int __mul24(int a, int b) {
  return (a << 8 >> 8) * (b << 8 >> 8);
}
static inline unsigned __umul24(unsigned a, unsigned b) {
  return (a & 0xffffffu) * (b & 0xffffffu);
}
static inline int __mulhi(int a, int b) {
  return (int)((long long)a * b >> 32);
}
static inline unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)a * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a,
                                            unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline unsigned __sad(int a, int b, unsigned c) {
  return c + (unsigned)(a > b ? a - b : b - a);
}
static inline int __hadd(int a, int b) {
  return (int)(((long long)a + b) >> 1);
}
static inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s) {
  s &= 31;
  return s ? hi << s | lo >> (32 - s) : hi;
}
static inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned s) {
  s &= 31;
  return s ? hi << (32 - s) | lo >> s : lo;
}
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
  unsigned long long v = (unsigned long long)b << 32 | a;
  unsigned r = 0;
  for (int i = 0; i < 4; i++)
    r |= (unsigned)(v >> 8 * (s >> 4 * i & 7) & 255) << 8 * i;
  return r;
}
static inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; i++)
    c += (int)(signed char)(a >> 8 * i) * (int)(signed char)(b >> 8 * i);
  return c;
}

#define KE_CACHED(suffix)                    \
  template <class T>                         \
  static inline T __ld##suffix(const T* p) { \
    return *p;                               \
  }
KE_CACHED(g)
KE_CACHED(ca)
KE_CACHED(cg) KE_CACHED(cs) KE_CACHED(lu) KE_CACHED(cv)
#undef KE_CACHED
#define KE_CACHED(suffix)                      \
  template <class T>                           \
  static inline void __st##suffix(T* p, T v) { \
    *p = v;                                    \
  }
    KE_CACHED(wb) KE_CACHED(cg) KE_CACHED(cs) KE_CACHED(wt)
#undef KE_CACHED
