// Conversions between float and the 16-bit formats, for device code and the
// runtime alike. Rounding is to nearest even.
#pragma once

namespace ke_device {

static inline unsigned bits_of(float f) {
  unsigned x;
  __builtin_memcpy(&x, &f, sizeof x);
  return x;
}
static inline float float_of(unsigned x) {
  float f;
  __builtin_memcpy(&f, &x, sizeof f);
  return f;
}

static inline unsigned short float_to_half(float f) {
  unsigned x = bits_of(f), sign = x >> 16 & 0x8000u;
  x &= 0x7fffffffu;
  if (x > 0x7f800000u) return 0x7fff;           // every NaN becomes this one
  if (x >= 0x477ff000u) return sign | 0x7c00u;  // rounds past 65504
  if (x < 0x38800000u) {                        // subnormal half, or zero
    // Adding 0.5 aligns the last place of a half subnormal with that of a
    // float near 0.5, so the addition itself rounds to nearest even.
    float magic = float_of(x) + 0.5f;
    return sign | (bits_of(magic) - 0x3f000000u);
  }
  unsigned round = 0xfffu + (x >> 13 & 1);
  return sign | ((x + round - 0x38000000u) >> 13);
}
static inline float half_to_float(unsigned short h) {
  unsigned sign = (unsigned)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 0x3ff;
  if (e == 31) return float_of(sign | 0x7f800000u | m << 13);
  if (e) return float_of(sign | (e + 112) << 23 | m << 13);
  float f = (float)m * 5.9604644775390625e-8f;  // 2^-24
  return sign ? -f : f;
}
static inline unsigned short float_to_bfloat16(float f) {
  unsigned x = bits_of(f);
  if ((x & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return (unsigned short)((x + 0x7fffu + (x >> 16 & 1)) >> 16);
}
static inline float bfloat16_to_float(unsigned short h) {
  return float_of((unsigned)h << 16);
}

// A float from which rounding to 16 bits gives what rounding `x` at once would:
// cut towards zero, with the last bit set if anything was cut off.
static inline float cut(double x) {
  float f = (float)x;
  if ((double)f == x || x != x) return f;
  unsigned b = bits_of(f);
  if (__builtin_fabs((double)f) > __builtin_fabs(x)) b--;
  return float_of(b | 1);
}
static inline float cut(unsigned long long x) {
  unsigned long long high = x;
  int shift = 0;
  while (high >> 24) high = high >> 1 | (high & 1), shift++;
  return (float)high * float_of((127u + (unsigned)shift) << 23);
}
static inline float cut(long long x) {
  return x < 0 ? -cut(0ull - (unsigned long long)x)
               : cut((unsigned long long)x);
}

// The sum of two doubles, cut in the same way.
static inline double cut_sum(double a, double b) {
  double s = a + b, of_b = s - a;
  double lost = (a - (s - of_b)) + (b - of_b);
  if (!(lost != 0)) return s;  // exact, or not a number
  unsigned long long bits;
  __builtin_memcpy(&bits, &s, sizeof bits);
  if ((lost > 0) != (s > 0)) bits--;
  bits |= 1;
  __builtin_memcpy(&s, &bits, sizeof bits);
  return s;
}

}  // namespace ke_device
