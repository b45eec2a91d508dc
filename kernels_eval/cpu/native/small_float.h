// Conversions between float and the 16-bit formats, for device code and the
// runtime alike. Rounding is to nearest even.
#pragma once

namespace ke {

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
  if (x >= 0x7f800000u) return sign | (x > 0x7f800000u ? 0x7fffu : 0x7c00u);
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
}  // namespace ke
