// half and bfloat16: stored in 16 bits, computed in float and rounded to
// nearest even after each operation, which is what the device's scalar
// instructions give (fma rounds once). The set of conversions is that of the
// toolkit's header, so that what is ambiguous there (half * float) is ambiguous
// here.
#pragma once

#include "small_float.h"

#define KE_SMALL_FLOAT(T, T2, to_bits, from_bits)                             \
  struct T {                                                                  \
    unsigned short bits;                                                      \
    T() = default;                                                            \
    T(float x) : bits(ke::to_bits(x)) {}                                      \
    T(double x) : bits(ke::to_bits((float)x)) {}                              \
    T(int x) : bits(ke::to_bits((float)x)) {}                                 \
    T(unsigned x) : bits(ke::to_bits((float)x)) {}                            \
    T(long long x) : bits(ke::to_bits((float)x)) {}                           \
    operator float() const { return ke::from_bits(bits); }                    \
    operator signed char() const { return (signed char)ke::from_bits(bits); } \
    operator unsigned char() const {                                          \
      return (unsigned char)ke::from_bits(bits);                              \
    }                                                                         \
    operator char() const { return (char)ke::from_bits(bits); }               \
    operator short() const { return (short)ke::from_bits(bits); }             \
    operator unsigned short() const {                                         \
      return (unsigned short)ke::from_bits(bits);                             \
    }                                                                         \
    operator int() const { return (int)ke::from_bits(bits); }                 \
    operator unsigned() const { return (unsigned)ke::from_bits(bits); }       \
    operator long() const { return (long)ke::from_bits(bits); }               \
    operator unsigned long() const {                                          \
      return (unsigned long)ke::from_bits(bits);                              \
    }                                                                         \
    operator long long() const { return (long long)ke::from_bits(bits); }     \
    operator unsigned long long() const {                                     \
      return (unsigned long long)ke::from_bits(bits);                         \
    }                                                                         \
    operator bool() const { return (bits & 0x7fff) != 0; }                    \
    T& operator+=(T b) { return *this = T((float)*this + (float)b); }         \
    T& operator-=(T b) { return *this = T((float)*this - (float)b); }         \
    T& operator*=(T b) { return *this = T((float)*this * (float)b); }         \
    T& operator/=(T b) { return *this = T((float)*this / (float)b); }         \
  };                                                                          \
  static inline T operator+(T a, T b) { return T((float)a + (float)b); }      \
  static inline T operator-(T a, T b) { return T((float)a - (float)b); }      \
  static inline T operator*(T a, T b) { return T((float)a * (float)b); }      \
  static inline T operator/(T a, T b) { return T((float)a / (float)b); }      \
  static inline T operator-(T a) { return T(-(float)a); }                     \
  static inline bool operator<(T a, T b) { return (float)a < (float)b; }      \
  static inline bool operator>(T a, T b) { return (float)a > (float)b; }      \
  static inline bool operator<=(T a, T b) { return (float)a <= (float)b; }    \
  static inline bool operator>=(T a, T b) { return (float)a >= (float)b; }    \
  static inline bool operator==(T a, T b) { return (float)a == (float)b; }    \
  static inline bool operator!=(T a, T b) { return (float)a != (float)b; }    \
  struct __attribute__((aligned(4))) T2 {                                     \
    T x, y;                                                                   \
    T2() = default;                                                           \
    T2(T a, T b) : x(a), y(b) {}                                              \
  };                                                                          \
  static inline T2 operator+(T2 a, T2 b) { return T2(a.x + b.x, a.y + b.y); } \
  static inline T2 operator-(T2 a, T2 b) { return T2(a.x - b.x, a.y - b.y); } \
  static inline T2 operator*(T2 a, T2 b) { return T2(a.x * b.x, a.y * b.y); } \
  static inline T __hadd(T a, T b) { return a + b; }                          \
  static inline T __hsub(T a, T b) { return a - b; }                          \
  static inline T __hmul(T a, T b) { return a * b; }                          \
  static inline T __hdiv(T a, T b) { return a / b; }                          \
  static inline T __hneg(T a) { return -a; }                                  \
  static inline T __habs(T a) { return T(fabsf((float)a)); }                  \
  static inline T __hfma(T a, T b, T c) {                                     \
    return T(fmaf((float)a, (float)b, (float)c));                             \
  }                                                                           \
  static inline T __hmax(T a, T b) { return T(fmaxf((float)a, (float)b)); }   \
  static inline T __hmin(T a, T b) { return T(fminf((float)a, (float)b)); }   \
  static inline bool __hlt(T a, T b) { return a < b; }                        \
  static inline bool __hgt(T a, T b) { return a > b; }                        \
  static inline bool __hle(T a, T b) { return a <= b; }                       \
  static inline bool __hge(T a, T b) { return a >= b; }                       \
  static inline bool __heq(T a, T b) { return a == b; }                       \
  static inline bool __hne(T a, T b) { return a != b; }                       \
  static inline bool __hisnan(T a) { return (float)a != (float)a; }           \
  static inline T hexp(T a) { return T(expf((float)a)); }                     \
  static inline T hlog(T a) { return T(logf((float)a)); }                     \
  static inline T hsqrt(T a) { return T(sqrtf((float)a)); }                   \
  static inline T hrsqrt(T a) { return T(rsqrtf((float)a)); }                 \
  static inline T hrcp(T a) { return T(1.0f / (float)a); }                    \
  static inline T hsin(T a) { return T(sinf((float)a)); }                     \
  static inline T hcos(T a) { return T(cosf((float)a)); }                     \
  static inline T hfloor(T a) { return T(floorf((float)a)); }                 \
  static inline T hceil(T a) { return T(ceilf((float)a)); }                   \
  static inline T2 __hadd2(T2 a, T2 b) { return a + b; }                      \
  static inline T2 __hsub2(T2 a, T2 b) { return a - b; }                      \
  static inline T2 __hmul2(T2 a, T2 b) { return a * b; }                      \
  static inline T2 __hfma2(T2 a, T2 b, T2 c) {                                \
    return T2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));                  \
  }                                                                           \
  static inline T2 __hmax2(T2 a, T2 b) {                                      \
    return T2(__hmax(a.x, b.x), __hmax(a.y, b.y));                            \
  }                                                                           \
  static inline T2 __hmin2(T2 a, T2 b) {                                      \
    return T2(__hmin(a.x, b.x), __hmin(a.y, b.y));                            \
  }

KE_SMALL_FLOAT(__half, __half2, float_to_half, half_to_float)
KE_SMALL_FLOAT(__nv_bfloat16, __nv_bfloat162, float_to_bfloat16,
               bfloat16_to_float)
#undef KE_SMALL_FLOAT

typedef __half half;
typedef __half2 half2;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

static inline __half __float2half(float x) { return __half(x); }
static inline __half __float2half_rn(float x) { return __half(x); }
static inline __half __double2half(double x) { return __half(x); }
static inline float __half2float(__half x) { return (float)x; }
static inline __half __int2half_rn(int x) { return __half((float)x); }
static inline int __half2int_rn(__half x) { return __float2int_rn((float)x); }
static inline int __half2int_rz(__half x) { return __float2int_rz((float)x); }
static inline __half2 __floats2half2_rn(float a, float b) {
  return __half2(__half(a), __half(b));
}
static inline __half2 __float2half2_rn(float a) {
  return __half2(__half(a), __half(a));
}
static inline __half2 __float22half2_rn(float2 a) {
  return __half2(__half(a.x), __half(a.y));
}
static inline float2 __half22float2(__half2 a) {
  return make_float2((float)a.x, (float)a.y);
}
static inline __half2 __halves2half2(__half a, __half b) {
  return __half2(a, b);
}
static inline __half2 __half2half2(__half a) { return __half2(a, a); }
static inline __half2 make_half2(__half a, __half b) { return __half2(a, b); }
static inline __half __low2half(__half2 a) { return a.x; }
static inline __half __high2half(__half2 a) { return a.y; }
static inline float __low2float(__half2 a) { return (float)a.x; }
static inline float __high2float(__half2 a) { return (float)a.y; }
static inline unsigned short __half_as_ushort(__half a) { return a.bits; }
static inline __half __ushort_as_half(unsigned short b) {
  __half h;
  h.bits = b;
  return h;
}
static inline __nv_bfloat16 __float2bfloat16(float x) {
  return __nv_bfloat16(x);
}
static inline __nv_bfloat16 __float2bfloat16_rn(float x) {
  return __nv_bfloat16(x);
}
static inline __nv_bfloat16 __double2bfloat16(double x) {
  return __nv_bfloat16(x);
}
static inline float __bfloat162float(__nv_bfloat16 x) { return (float)x; }
static inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
  return __nv_bfloat162(__nv_bfloat16(a), __nv_bfloat16(b));
}
static inline __nv_bfloat162 __float2bfloat162_rn(float a) {
  return __nv_bfloat162(__nv_bfloat16(a), __nv_bfloat16(a));
}
static inline float2 __bfloat1622float2(__nv_bfloat162 a) {
  return make_float2((float)a.x, (float)a.y);
}
static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a,
                                                __nv_bfloat16 b) {
  return __nv_bfloat162(a, b);
}
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 a) {
  return a.bits;
}
