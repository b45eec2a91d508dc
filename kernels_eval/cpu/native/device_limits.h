// The part of <limits> that kernels use: std::numeric_limits of numbers.
#pragma once

#define KE_LIMIT(T, name, value) \
  __host__ __device__ static constexpr T name() { return value; }
#define KE_FLOAT_LIMITS(T, prefix, digits_)                   \
  template <>                                                 \
  struct numeric_limits<T> : ke_device::float_kind<digits_> { \
    KE_LIMIT(T, min, prefix##_MIN__)                          \
    KE_LIMIT(T, max, prefix##_MAX__)                          \
    KE_LIMIT(T, lowest, -prefix##_MAX__)                      \
    KE_LIMIT(T, epsilon, prefix##_EPSILON__)                  \
    KE_LIMIT(T, denorm_min, prefix##_DENORM_MIN__)            \
    KE_LIMIT(T, round_error, (T)0.5)                          \
    KE_LIMIT(T, infinity, (T)__builtin_huge_val())            \
    KE_LIMIT(T, quiet_NaN, (T)__builtin_nan(""))              \
  };
// The largest number of a type has all bits set but the sign.
#define KE_INTEGER_LIMITS(T)                                                \
  template <>                                                               \
  struct numeric_limits<T>                                                  \
      : ke_device::integer_kind<((T) - 1 < (T)0), sizeof(T) * 8> {          \
    KE_LIMIT(T, max,                                                        \
             (T)(~0ull >> (64 - sizeof(T) * 8 + ((T) - 1 < (T)0 ? 1 : 0)))) \
    KE_LIMIT(T, min, (T)((T) - 1 < (T)0 ? -max() - 1 : 0))                  \
    KE_LIMIT(T, lowest, min())                                              \
    KE_LIMIT(T, epsilon, 0)                                                 \
    KE_LIMIT(T, infinity, 0)                                                \
    KE_LIMIT(T, quiet_NaN, 0)                                               \
  };

namespace ke_device {
template <int Digits>
struct float_kind {
  static constexpr bool is_specialized = true, is_signed = true;
  static constexpr bool is_integer = false, is_exact = false;
  static constexpr bool has_infinity = true, has_quiet_NaN = true;
  static constexpr int digits = Digits, radix = 2;
};
template <bool Signed, int Bits>
struct integer_kind {
  static constexpr bool is_specialized = true, is_signed = Signed;
  static constexpr bool is_integer = true, is_exact = true;
  static constexpr bool has_infinity = false, has_quiet_NaN = false;
  static constexpr int digits = Bits - Signed, radix = 2;
};
}  // namespace ke_device

namespace std {
template <class T>
struct numeric_limits {
  static constexpr bool is_specialized = false;
};
template <class T>
struct numeric_limits<const T> : numeric_limits<T> {};
KE_FLOAT_LIMITS(float, __FLT, 24)
KE_FLOAT_LIMITS(double, __DBL, 53)
KE_INTEGER_LIMITS(char)
KE_INTEGER_LIMITS(signed char)
KE_INTEGER_LIMITS(unsigned char)
KE_INTEGER_LIMITS(short)
KE_INTEGER_LIMITS(unsigned short)
KE_INTEGER_LIMITS(int)
KE_INTEGER_LIMITS(unsigned)
KE_INTEGER_LIMITS(long)
KE_INTEGER_LIMITS(unsigned long)
KE_INTEGER_LIMITS(long long)
KE_INTEGER_LIMITS(unsigned long long)
template <>
struct numeric_limits<bool> : ke_device::integer_kind<false, 1> {
  KE_LIMIT(bool, min, false)
  KE_LIMIT(bool, max, true)
  KE_LIMIT(bool, lowest, false)
};
}  // namespace std
#undef KE_INTEGER_LIMITS
#undef KE_FLOAT_LIMITS
#undef KE_LIMIT
