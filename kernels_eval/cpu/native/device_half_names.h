// Functions of half and bfloat16 that have the type in their names. The two
// families differ in nothing else: `half` stands for `bfloat16` in names, the
// pair is half2 or bfloat162.
#pragma once

namespace ke_device {
// The neighbour of `nearest` that a rounding mode asks for.
template <class T>
KE_INLINE T narrow(float x, rounding mode) {
  T r(x);
  float v = (float)r;
  bool wrong = mode == kZero   ? fabsf(v) > fabsf(x)
               : mode == kUp   ? v < x
               : mode == kDown ? v > x
                               : false;
  if (!wrong) return r;
  if (mode != kZero && (r.bits & 0x7fff) == 0) {  // from zero to the smallest
    r.bits = mode == kUp ? 1 : 0x8001;
    return r;
  }
  bool grow = mode == kUp ? v > 0 : mode == kDown ? v < 0 : false;
  r.bits = (unsigned short)(r.bits + (grow ? 1 : -1));
  return r;
}
}  // namespace ke_device

#define KE_FROM_INTEGER(T, name, integer, I)                                   \
  KE_INLINE T __##integer##2##name##_rn(I x) { return T(x); }                  \
  KE_INLINE I __##name##2##integer##_rz(T x) { return (I)x; }                  \
  KE_INLINE I __##name##2##integer##_rn(T x) { return (I)T(rintf((float)x)); } \
  KE_INLINE I __##name##2##integer##_ru(T x) { return (I)T(ceilf((float)x)); } \
  KE_INLINE I __##name##2##integer##_rd(T x) { return (I)T(floorf((float)x)); }
#define KE_NAMES(T, T2, name, pair)                                          \
  KE_INLINE T __float2##name(float x) { return T(x); }                       \
  KE_INLINE T __float2##name##_rn(float x) { return T(x); }                  \
  KE_INLINE T __float2##name##_rz(float x) {                                 \
    return ke_device::narrow<T>(x, ke_device::kZero);                        \
  }                                                                          \
  KE_INLINE T __float2##name##_ru(float x) {                                 \
    return ke_device::narrow<T>(x, ke_device::kUp);                          \
  }                                                                          \
  KE_INLINE T __float2##name##_rd(float x) {                                 \
    return ke_device::narrow<T>(x, ke_device::kDown);                        \
  }                                                                          \
  KE_INLINE T __double2##name(double x) { return T(x); }                     \
  KE_INLINE float __##name##2float(T x) { return (float)x; }                 \
  KE_INLINE T2 __floats2##pair##_rn(float a, float b) {                      \
    return T2(T(a), T(b));                                                   \
  }                                                                          \
  KE_INLINE T2 __float2##pair##_rn(float a) { return T2(T(a), T(a)); }       \
  KE_INLINE T2 __float22##pair##_rn(float2 a) { return T2(T(a.x), T(a.y)); } \
  KE_INLINE float2 __##pair##2float2(T2 a) {                                 \
    return make_float2((float)a.x, (float)a.y);                              \
  }                                                                          \
  KE_INLINE T2 __halves2##pair(T a, T b) { return T2(a, b); }                \
  KE_INLINE T2 __##name##2##pair(T a) { return T2(a, a); }                   \
  KE_INLINE T2 make_##pair(T a, T b) { return T2(a, b); }                    \
  KE_INLINE T __low2##name(T2 a) { return a.x; }                             \
  KE_INLINE T __high2##name(T2 a) { return a.y; }                            \
  KE_INLINE T2 __low2##pair(T2 a) { return T2(a.x, a.x); }                   \
  KE_INLINE T2 __high2##pair(T2 a) { return T2(a.y, a.y); }                  \
  KE_INLINE T2 __lows2##pair(T2 a, T2 b) { return T2(a.x, b.x); }            \
  KE_INLINE T2 __highs2##pair(T2 a, T2 b) { return T2(a.y, b.y); }           \
  KE_INLINE unsigned short __##name##_as_ushort(T a) { return a.bits; }      \
  KE_INLINE short __##name##_as_short(T a) { return (short)a.bits; }         \
  KE_INLINE T __ushort_as_##name(unsigned short b) {                         \
    T a;                                                                     \
    a.bits = b;                                                              \
    return a;                                                                \
  }                                                                          \
  KE_INLINE T __short_as_##name(short b) {                                   \
    return __ushort_as_##name((unsigned short)b);                            \
  }                                                                          \
  KE_FROM_INTEGER(T, name, int, int)                                         \
  KE_FROM_INTEGER(T, name, uint, unsigned)                                   \
  KE_FROM_INTEGER(T, name, short, short)                                     \
  KE_FROM_INTEGER(T, name, ushort, unsigned short)                           \
  KE_FROM_INTEGER(T, name, ll, long long)                                    \
  KE_FROM_INTEGER(T, name, ull, unsigned long long)

KE_NAMES(__half, __half2, half, half2)
KE_NAMES(__nv_bfloat16, __nv_bfloat162, bfloat16, bfloat162);
#undef KE_NAMES
#undef KE_FROM_INTEGER
