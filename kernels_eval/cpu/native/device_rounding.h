// Intrinsics with a rounding mode in their name, exact in every mode.
#pragma once

namespace ke_device {
enum rounding { kNearest, kZero, kUp, kDown };

// `r` is the nearest number to an exact result and `rest` has the sign of what
// is missing from it. The neighbour that `mode` asks for:
template <class T>
KE_INLINE T directed(T r, T rest, rounding mode) {
  if (mode == kNearest || !(rest != 0) || __builtin_isinf(r)) return r;
  bool up = mode == kUp || (mode == kZero && (r < 0 || (r == 0 && rest < 0)));
  if (up ? rest <= 0 : rest >= 0) return r;
  return up ? nextafter(r, (T)INFINITY) : nextafter(r, -(T)INFINITY);
}
template <class T>
KE_INLINE T add(T a, T b, rounding mode) {
  T r = a + b, of_b = r - a;  // Knuth's exact rest of a sum
  return directed(r, (a - (r - of_b)) + (b - of_b), mode);
}
template <class T>
KE_INLINE T multiply(T a, T b, rounding mode) {
  T r = a * b;
  return directed(r, fma(a, b, -r), mode);
}
template <class T>
KE_INLINE T divide(T a, T b, rounding mode) {
  T r = a / b, rest = fma(-r, b, a);
  return directed(r, b < 0 ? -rest : rest, mode);
}
template <class T>
KE_INLINE T root(T a, rounding mode) {
  T r = sqrt(a);
  return directed(r, fma(-r, r, a), mode);
}
// The sum of an exact product: in double for floats, whose products fit there.
KE_INLINE float multiply_add(float a, float b, float c, rounding mode) {
  double product = (double)a * b, sum = product + c;
  double of_c = sum - product;
  double lost = (product - (sum - of_c)) + ((double)c - of_c);
  float r = fmaf(a, b, c);
  double rest = sum - (double)r;
  return directed(r, (float)((rest > 0) - (rest < 0) ? rest : lost), mode);
}
// Integers and doubles to float. `exact` holds the value of x.
KE_INLINE float to_float(__int128 x, rounding mode) {
  float r = (float)x;
  __int128 rest = x - (__int128)r;
  return directed(r, (float)((rest > 0) - (rest < 0)), mode);
}
KE_INLINE float to_float(double x, rounding mode) {
  float r = (float)x;
  if (__builtin_isinf(r) && !__builtin_isinf(x)) {  // beyond the largest float
    bool away = mode == kNearest || mode == (x > 0 ? kUp : kDown);
    return away ? r : copysignf(FLT_MAX, r);
  }
  double rest = x - (double)r;
  return directed(r, (float)((rest > 0) - (rest < 0)), mode);
}
KE_INLINE double to_double(__int128 x, rounding mode) {
  double r = (double)x;
  __int128 rest = x - (__int128)r;
  return directed(r, (double)((rest > 0) - (rest < 0)), mode);
}
// Out-of-range conversions saturate. NaN gives 0, or the highest bit alone
// where one of the types has 64 bits (PTX, `cvt`).
template <class To, class From>
KE_INLINE To saturate(From x, To low, To high) {
  if (x != x)
    return sizeof(To) == 4 && sizeof(From) == 4 ? To(0)
           : low < 0                            ? low
                                                : To(high / 2 + 1);
  if (x <= (From)low) return low;
  if (x >= (From)high) return high;
  return (To)x;
}
}  // namespace ke_device

#define KE_ROUNDED(m, mode)                                    \
  KE_INLINE float __fadd_##m(float a, float b) {               \
    return ke_device::add(a, b, ke_device::mode);              \
  }                                                            \
  KE_INLINE float __fsub_##m(float a, float b) {               \
    return ke_device::add(a, -b, ke_device::mode);             \
  }                                                            \
  KE_INLINE float __fmul_##m(float a, float b) {               \
    return ke_device::multiply(a, b, ke_device::mode);         \
  }                                                            \
  KE_INLINE float __fdiv_##m(float a, float b) {               \
    return ke_device::divide(a, b, ke_device::mode);           \
  }                                                            \
  KE_INLINE float __frcp_##m(float a) {                        \
    return ke_device::divide(1.0f, a, ke_device::mode);        \
  }                                                            \
  KE_INLINE float __fsqrt_##m(float a) {                       \
    return ke_device::root(a, ke_device::mode);                \
  }                                                            \
  KE_INLINE float __fmaf_##m(float a, float b, float c) {      \
    return ke_device::multiply_add(a, b, c, ke_device::mode);  \
  }                                                            \
  KE_INLINE double __dadd_##m(double a, double b) {            \
    return ke_device::add(a, b, ke_device::mode);              \
  }                                                            \
  KE_INLINE double __dsub_##m(double a, double b) {            \
    return ke_device::add(a, -b, ke_device::mode);             \
  }                                                            \
  KE_INLINE double __dmul_##m(double a, double b) {            \
    return ke_device::multiply(a, b, ke_device::mode);         \
  }                                                            \
  KE_INLINE double __ddiv_##m(double a, double b) {            \
    return ke_device::divide(a, b, ke_device::mode);           \
  }                                                            \
  KE_INLINE double __drcp_##m(double a) {                      \
    return ke_device::divide(1.0, a, ke_device::mode);         \
  }                                                            \
  KE_INLINE double __dsqrt_##m(double a) {                     \
    return ke_device::root(a, ke_device::mode);                \
  }                                                            \
  KE_INLINE float __int2float_##m(int x) {                     \
    return ke_device::to_float((__int128)x, ke_device::mode);  \
  }                                                            \
  KE_INLINE float __uint2float_##m(unsigned x) {               \
    return ke_device::to_float((__int128)x, ke_device::mode);  \
  }                                                            \
  KE_INLINE float __ll2float_##m(long long x) {                \
    return ke_device::to_float((__int128)x, ke_device::mode);  \
  }                                                            \
  KE_INLINE float __ull2float_##m(unsigned long long x) {      \
    return ke_device::to_float((__int128)x, ke_device::mode);  \
  }                                                            \
  KE_INLINE float __double2float_##m(double x) {               \
    return ke_device::to_float(x, ke_device::mode);            \
  }                                                            \
  KE_INLINE double __ll2double_##m(long long x) {              \
    return ke_device::to_double((__int128)x, ke_device::mode); \
  }                                                            \
  KE_INLINE double __ull2double_##m(unsigned long long x) {    \
    return ke_device::to_double((__int128)x, ke_device::mode); \
  }
KE_ROUNDED(rn, kNearest)
KE_ROUNDED(rz, kZero)
KE_ROUNDED(ru, kUp)
KE_ROUNDED(rd, kDown);
#undef KE_ROUNDED
KE_INLINE double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
KE_INLINE float __frsqrt_rn(float x) { return rsqrtf(x); }
KE_INLINE double __int2double_rn(int x) { return x; }
KE_INLINE double __uint2double_rn(unsigned x) { return x; }

// To integers: `to_whole` rounds as the mode says.
#define KE_CONVERT(m, to_whole)                                               \
  KE_INLINE int __float2int_##m(float x) {                                    \
    return ke_device::saturate<int>(to_whole(x), INT_MIN, INT_MAX);           \
  }                                                                           \
  KE_INLINE unsigned __float2uint_##m(float x) {                              \
    return ke_device::saturate<unsigned>(to_whole(x), 0u, UINT_MAX);          \
  }                                                                           \
  KE_INLINE long long __float2ll_##m(float x) {                               \
    return ke_device::saturate<long long>(to_whole(x), LLONG_MIN, LLONG_MAX); \
  }                                                                           \
  KE_INLINE unsigned long long __float2ull_##m(float x) {                     \
    return ke_device::saturate<unsigned long long>(to_whole(x), 0ull,         \
                                                   ULLONG_MAX);               \
  }                                                                           \
  KE_INLINE int __double2int_##m(double x) {                                  \
    return ke_device::saturate<int>(to_whole(x), INT_MIN, INT_MAX);           \
  }                                                                           \
  KE_INLINE unsigned __double2uint_##m(double x) {                            \
    return ke_device::saturate<unsigned>(to_whole(x), 0u, UINT_MAX);          \
  }                                                                           \
  KE_INLINE long long __double2ll_##m(double x) {                             \
    return ke_device::saturate<long long>(to_whole(x), LLONG_MIN, LLONG_MAX); \
  }                                                                           \
  KE_INLINE unsigned long long __double2ull_##m(double x) {                   \
    return ke_device::saturate<unsigned long long>(to_whole(x), 0ull,         \
                                                   ULLONG_MAX);               \
  }
KE_CONVERT(rn, rint)
KE_CONVERT(rz, trunc)
KE_CONVERT(ru, ceil)
KE_CONVERT(rd, floor);
#undef KE_CONVERT
