// half and bfloat16: stored in 16 bits, computed in float and rounded to
// nearest even after each operation, which is what the device's scalar
// instructions give (fma rounds once). The set of conversions is that of the
// toolkit's header, so that what is ambiguous there (half * float) is ambiguous
// here.
#pragma once

#include "small_float.h"

// ---- the types

#define KE_SMALL_FLOAT(T, T2, to_bits, from_bits)                            \
  struct T {                                                                 \
    unsigned short bits;                                                     \
    T() = default;                                                           \
    KE_ALWAYS_INLINE T(float x) : bits(ke_device::to_bits(x)) {}             \
    KE_ALWAYS_INLINE T(double x)                                             \
        : bits(ke_device::to_bits(ke_device::cut(x))) {}                     \
    KE_ALWAYS_INLINE T(short x) : T((float)x) {}                             \
    KE_ALWAYS_INLINE T(unsigned short x) : T((float)x) {}                    \
    KE_ALWAYS_INLINE T(int x) : T((double)x) {}                              \
    KE_ALWAYS_INLINE T(unsigned x) : T((double)x) {}                         \
    KE_ALWAYS_INLINE T(long x) : T((long long)x) {}                          \
    KE_ALWAYS_INLINE T(unsigned long x) : T((unsigned long long)x) {}        \
    KE_ALWAYS_INLINE T(long long x)                                          \
        : bits(ke_device::to_bits(ke_device::cut(x))) {}                     \
    KE_ALWAYS_INLINE T(unsigned long long x)                                 \
        : bits(ke_device::to_bits(ke_device::cut(x))) {}                     \
    KE_ALWAYS_INLINE operator float() const {                                \
      return ke_device::from_bits(bits);                                     \
    }                                                                        \
    KE_ALWAYS_INLINE operator signed char() const {                          \
      return whole<signed char>(-128, 127);                                  \
    }                                                                        \
    KE_ALWAYS_INLINE operator unsigned char() const {                        \
      return whole<unsigned char>(0, 255);                                   \
    }                                                                        \
    KE_ALWAYS_INLINE operator char() const {                                 \
      return whole<signed char>(-128, 127);                                  \
    }                                                                        \
    KE_ALWAYS_INLINE operator short() const {                                \
      return whole<short>(-32768, 32767);                                    \
    }                                                                        \
    KE_ALWAYS_INLINE operator unsigned short() const {                       \
      return whole<unsigned short>(0, 65535);                                \
    }                                                                        \
    KE_ALWAYS_INLINE operator int() const { return __float2int_rz(*this); }  \
    KE_ALWAYS_INLINE operator unsigned() const {                             \
      return __float2uint_rz(*this);                                         \
    }                                                                        \
    KE_ALWAYS_INLINE operator long() const {                                 \
      return (long)__float2ll_rz(*this);                                     \
    }                                                                        \
    KE_ALWAYS_INLINE operator unsigned long() const {                        \
      return (unsigned long)__float2ull_rz(*this);                           \
    }                                                                        \
    KE_ALWAYS_INLINE operator long long() const {                            \
      return __float2ll_rz(*this);                                           \
    }                                                                        \
    KE_ALWAYS_INLINE operator unsigned long long() const {                   \
      return __float2ull_rz(*this);                                          \
    }                                                                        \
    KE_ALWAYS_INLINE operator bool() const { return (bits & 0x7fff) != 0; }  \
    KE_ALWAYS_INLINE T& operator+=(T b) {                                    \
      return *this = T((float)*this + (float)b);                             \
    }                                                                        \
    KE_ALWAYS_INLINE T& operator-=(T b) {                                    \
      return *this = T((float)*this - (float)b);                             \
    }                                                                        \
    KE_ALWAYS_INLINE T& operator*=(T b) {                                    \
      return *this = T((float)*this * (float)b);                             \
    }                                                                        \
    KE_ALWAYS_INLINE T& operator/=(T b) {                                    \
      return *this = T((float)*this / (float)b);                             \
    }                                                                        \
    KE_ALWAYS_INLINE T& operator++() { return *this += T(1.0f); }            \
    KE_ALWAYS_INLINE T& operator--() { return *this -= T(1.0f); }            \
    KE_ALWAYS_INLINE T operator++(int) {                                     \
      T old = *this;                                                         \
      ++*this;                                                               \
      return old;                                                            \
    }                                                                        \
    KE_ALWAYS_INLINE T operator--(int) {                                     \
      T old = *this;                                                         \
      --*this;                                                               \
      return old;                                                            \
    }                                                                        \
                                                                             \
   private:                                                                  \
    template <class I>                                                       \
    KE_ALWAYS_INLINE I whole(int low, int high) const {                      \
      int x = __float2int_rz(*this);                                         \
      return (I)(x < low ? low : x > high ? high : x);                       \
    }                                                                        \
  };                                                                         \
  KE_INLINE T operator+(T a, T b) { return T((float)a + (float)b); }         \
  KE_INLINE T operator-(T a, T b) { return T((float)a - (float)b); }         \
  KE_INLINE T operator*(T a, T b) { return T((float)a * (float)b); }         \
  KE_INLINE T operator/(T a, T b) { return T((float)a / (float)b); }         \
  KE_INLINE T operator+(T a) { return a; }                                   \
  KE_INLINE T operator-(T a) {                                               \
    a.bits ^= 0x8000;                                                        \
    return a;                                                                \
  }                                                                          \
  KE_INLINE bool operator<(T a, T b) { return (float)a < (float)b; }         \
  KE_INLINE bool operator>(T a, T b) { return (float)a > (float)b; }         \
  KE_INLINE bool operator<=(T a, T b) { return (float)a <= (float)b; }       \
  KE_INLINE bool operator>=(T a, T b) { return (float)a >= (float)b; }       \
  KE_INLINE bool operator==(T a, T b) { return (float)a == (float)b; }       \
  KE_INLINE bool operator!=(T a, T b) { return (float)a != (float)b; }       \
  struct __attribute__((aligned(4))) T2 {                                    \
    T x, y;                                                                  \
    T2() = default;                                                          \
    KE_ALWAYS_INLINE T2(T a, T b) : x(a), y(b) {}                            \
    KE_ALWAYS_INLINE T2& operator+=(T2 b) {                                  \
      return *this = T2(x + b.x, y + b.y);                                   \
    }                                                                        \
    KE_ALWAYS_INLINE T2& operator-=(T2 b) {                                  \
      return *this = T2(x - b.x, y - b.y);                                   \
    }                                                                        \
    KE_ALWAYS_INLINE T2& operator*=(T2 b) {                                  \
      return *this = T2(x * b.x, y * b.y);                                   \
    }                                                                        \
    KE_ALWAYS_INLINE T2& operator/=(T2 b) {                                  \
      return *this = T2(x / b.x, y / b.y);                                   \
    }                                                                        \
  };                                                                         \
  KE_INLINE T2 operator+(T2 a, T2 b) { return a += b; }                      \
  KE_INLINE T2 operator-(T2 a, T2 b) { return a -= b; }                      \
  KE_INLINE T2 operator*(T2 a, T2 b) { return a *= b; }                      \
  KE_INLINE T2 operator/(T2 a, T2 b) { return a /= b; }                      \
  KE_INLINE T2 operator-(T2 a) { return T2(-a.x, -a.y); }                    \
  KE_INLINE bool operator==(T2 a, T2 b) { return a.x == b.x && a.y == b.y; } \
  KE_INLINE bool operator!=(T2 a, T2 b) { return a.x != b.x && a.y != b.y; }

KE_SMALL_FLOAT(__half, __half2, float_to_half, half_to_float)
KE_SMALL_FLOAT(__nv_bfloat16, __nv_bfloat162, float_to_bfloat16,
               bfloat16_to_float)
#undef KE_SMALL_FLOAT

typedef __half half;
typedef __half2 half2;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

// ---- functions with one name for both

#define KE_FUNCTIONS(T, T2)                                             \
  KE_INLINE T __hadd(T a, T b) { return a + b; }                        \
  KE_INLINE T __hsub(T a, T b) { return a - b; }                        \
  KE_INLINE T __hmul(T a, T b) { return a * b; }                        \
  KE_INLINE T __hdiv(T a, T b) { return a / b; }                        \
  KE_INLINE T __hneg(T a) { return -a; }                                \
  KE_INLINE T __habs(T a) {                                             \
    a.bits &= 0x7fff;                                                   \
    return a;                                                           \
  }                                                                     \
  KE_INLINE T __hfma(T a, T b, T c) { /* the product is exact */        \
    return T(ke_device::cut_sum((double)(float)a * (double)(float)b,    \
                                (double)(float)c));                     \
  }                                                                     \
  KE_INLINE T ke_saturated(T a) { return T(__saturatef((float)a)); }    \
  KE_INLINE T __hadd_sat(T a, T b) { return ke_saturated(a + b); }      \
  KE_INLINE T __hsub_sat(T a, T b) { return ke_saturated(a - b); }      \
  KE_INLINE T __hmul_sat(T a, T b) { return ke_saturated(a * b); }      \
  KE_INLINE T __hfma_sat(T a, T b, T c) {                               \
    return ke_saturated(__hfma(a, b, c));                               \
  }                                                                     \
  KE_INLINE T __hfma_relu(T a, T b, T c) {                              \
    return T(fmaxf((float)__hfma(a, b, c), 0.0f));                      \
  }                                                                     \
  KE_INLINE bool __hisnan(T a) { return (float)a != (float)a; }         \
  KE_INLINE int __hisinf(T a) {                                         \
    return isinf((float)a) ? ((float)a > 0 ? 1 : -1) : 0;               \
  }                                                                     \
  KE_INLINE T __hmax(T a, T b) { return T(fmaxf((float)a, (float)b)); } \
  KE_INLINE T __hmin(T a, T b) { return T(fminf((float)a, (float)b)); } \
  KE_INLINE T __hmax_nan(T a, T b) {                                    \
    return __hisnan(a) ? a : __hisnan(b) ? b : __hmax(a, b);            \
  }                                                                     \
  KE_INLINE T __hmin_nan(T a, T b) {                                    \
    return __hisnan(a) ? a : __hisnan(b) ? b : __hmin(a, b);            \
  }                                                                     \
  KE_INLINE T2 __hfma2(T2 a, T2 b, T2 c) {                              \
    return T2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));            \
  }                                                                     \
  KE_INLINE T2 __lowhigh2highlow(T2 a) { return T2(a.y, a.x); }         \
  KE_INLINE float __low2float(T2 a) { return (float)a.x; }              \
  KE_INLINE float __high2float(T2 a) { return (float)a.y; }
#define KE_SCALAR_1(T, T2, name, expression) \
  KE_INLINE T h##name(T a) {                 \
    float x = (float)a;                      \
    return T((float)(expression));           \
  }                                          \
  KE_INLINE T2 h2##name(T2 a) { return T2(h##name(a.x), h##name(a.y)); }
#define KE_PAIR_1(T, T2, name) \
  KE_INLINE T2 name##2(T2 a) { return T2(name(a.x), name(a.y)); }
#define KE_PAIR_2(T, T2, name)                 \
  KE_INLINE T2 name##2(T2 a, T2 b) {           \
    return T2(name(a.x, b.x), name(a.y, b.y)); \
  }
// Comparisons: of one, of both halves as numbers, as masks and as one answer.
// A `u` behind the name means true where either is not a number.
#define KE_COMPARE(T, T2, name, op)                                       \
  KE_INLINE bool __h##name(T a, T b) { return a op b; }                   \
  KE_INLINE bool __h##name##u(T a, T b) {                                 \
    return a op b || __hisnan(a) || __hisnan(b);                          \
  }                                                                       \
  KE_INLINE T2 __h##name##2(T2 a, T2 b) {                                 \
    return T2(T(a.x op b.x ? 1.0f : 0.0f), T(a.y op b.y ? 1.0f : 0.0f));  \
  }                                                                       \
  KE_INLINE unsigned __h##name##2_mask(T2 a, T2 b) {                      \
    return (a.x op b.x ? 0xffffu : 0u) | (a.y op b.y ? 0xffff0000u : 0u); \
  }                                                                       \
  KE_INLINE bool __hb##name##2(T2 a, T2 b) { return a.x op b.x && a.y op b.y; }
#define KE_BOTH(macro, ...)           \
  macro(__half, __half2, __VA_ARGS__) \
      macro(__nv_bfloat16, __nv_bfloat162, __VA_ARGS__)

KE_FUNCTIONS(__half, __half2)
KE_FUNCTIONS(__nv_bfloat16, __nv_bfloat162)
// clang-format off
KE_BOTH(KE_PAIR_2, __hadd) KE_BOTH(KE_PAIR_2, __hsub) KE_BOTH(KE_PAIR_2, __hmul)
KE_BOTH(KE_PAIR_2, __hmax) KE_BOTH(KE_PAIR_2, __hmin)
KE_BOTH(KE_PAIR_1, __hneg) KE_BOTH(KE_PAIR_1, __habs)
KE_BOTH(KE_COMPARE, eq, ==) KE_BOTH(KE_COMPARE, ne, !=)
KE_BOTH(KE_COMPARE, lt, <) KE_BOTH(KE_COMPARE, le, <=)
KE_BOTH(KE_COMPARE, gt, >) KE_BOTH(KE_COMPARE, ge, >=)
KE_BOTH(KE_SCALAR_1, exp, expf(x)) KE_BOTH(KE_SCALAR_1, exp2, exp2f(x))
KE_BOTH(KE_SCALAR_1, exp10, exp10f(x)) KE_BOTH(KE_SCALAR_1, log, logf(x))
KE_BOTH(KE_SCALAR_1, log2, log2f(x)) KE_BOTH(KE_SCALAR_1, log10, log10f(x))
KE_BOTH(KE_SCALAR_1, sqrt, sqrtf(x)) KE_BOTH(KE_SCALAR_1, rsqrt, 1.0 / sqrt((double)x))
KE_BOTH(KE_SCALAR_1, rcp, 1.0f / x) KE_BOTH(KE_SCALAR_1, sin, sinf(x))
KE_BOTH(KE_SCALAR_1, cos, cosf(x)) KE_BOTH(KE_SCALAR_1, tanh, tanhf(x))
KE_BOTH(KE_SCALAR_1, floor, floorf(x)) KE_BOTH(KE_SCALAR_1, ceil, ceilf(x))
KE_BOTH(KE_SCALAR_1, trunc, truncf(x)) KE_BOTH(KE_SCALAR_1, rint, rintf(x))
    // clang-format on
    KE_INLINE __half2 __h2div(__half2 a, __half2 b) {
  return a / b;
}
KE_INLINE __nv_bfloat162 __h2div(__nv_bfloat162 a, __nv_bfloat162 b) {
  return a / b;
}
#undef KE_BOTH
#undef KE_COMPARE
#undef KE_PAIR_2
#undef KE_PAIR_1
#undef KE_SCALAR_1
#undef KE_FUNCTIONS

#include "device_half_names.h"
