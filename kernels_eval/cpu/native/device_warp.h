// Warp operations. Every one is a meeting of the lanes named in its mask: the
// runtime parks a lane until all of them have come, then works out each lane's
// result. Values travel as 64 bits.
#pragma once

#include "device_ops.h"

extern "C" {
uint64_t ke_warp(int op, unsigned mask, uint64_t value, int argument,
                 int width);
unsigned ke_active_mask();
int ke_lane();
}

KE_INLINE void __syncwarp(unsigned mask = 0xffffffffu) {
  ke_warp(KE_SYNC, mask, 0, 0, 32);
}
KE_INLINE unsigned __activemask() { return ke_active_mask(); }
KE_INLINE unsigned __lanemask_lt() { return (1u << ke_lane()) - 1; }

namespace ke_device {
// Values as 64 bits and back. (A copy through memory would be checked.)
template <size_t N>
struct word;
template <>
struct word<2> {
  typedef unsigned short type;
};
template <>
struct word<4> {
  typedef unsigned type;
};
template <>
struct word<8> {
  typedef uint64_t type;
};
template <class T>
KE_INLINE uint64_t to_bits(T value) {
  return __builtin_bit_cast(typename word<sizeof(T)>::type, value);
}
template <class T>
KE_INLINE T from_bits(uint64_t bits) {
  typedef typename word<sizeof(T)>::type Word;
  return __builtin_bit_cast(T, (Word)bits);
}
template <class T>
KE_INLINE T shuffle(int op, unsigned mask, T value, int argument, int width) {
  return from_bits<T>(ke_warp(op, mask, to_bits(value), argument, width));
}
}  // namespace ke_device

// The device has these for 32- and 64-bit numbers and the 16-bit floats.
#define KE_SHUFFLE(T)                                                         \
  KE_INLINE T __shfl_sync(unsigned m, T v, int lane, int width = 32) {        \
    return ke_device::shuffle(KE_SHFL_IDX, m, v, lane, width);                \
  }                                                                           \
  KE_INLINE T __shfl_up_sync(unsigned m, T v, unsigned d, int width = 32) {   \
    return ke_device::shuffle(KE_SHFL_UP, m, v, (int)d, width);               \
  }                                                                           \
  KE_INLINE T __shfl_down_sync(unsigned m, T v, unsigned d, int width = 32) { \
    return ke_device::shuffle(KE_SHFL_DOWN, m, v, (int)d, width);             \
  }                                                                           \
  KE_INLINE T __shfl_xor_sync(unsigned m, T v, int x, int width = 32) {       \
    return ke_device::shuffle(KE_SHFL_XOR, m, v, x, width);                   \
  }
// clang-format off
KE_SHUFFLE(int) KE_SHUFFLE(unsigned) KE_SHUFFLE(long) KE_SHUFFLE(unsigned long)
KE_SHUFFLE(long long) KE_SHUFFLE(unsigned long long) KE_SHUFFLE(float)
KE_SHUFFLE(double)
#ifdef KE_WITH_HALF
KE_SHUFFLE(__half) KE_SHUFFLE(__half2)
KE_SHUFFLE(__nv_bfloat16) KE_SHUFFLE(__nv_bfloat162)
#endif
// clang-format on
#undef KE_SHUFFLE

                KE_INLINE unsigned __ballot_sync(unsigned mask, int predicate) {
  return (unsigned)ke_warp(KE_BALLOT, mask, !!predicate, 0, 32);
}
KE_INLINE int __any_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0;
}
// A lane of the mask that does not exist votes neither way.
KE_INLINE int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, !predicate) == 0;
}
KE_INLINE int __uni_sync(unsigned mask, int predicate) {
  unsigned yes = __ballot_sync(mask, predicate);
  return predicate ? __ballot_sync(mask, !predicate) == 0 : yes == 0;
}
#define KE_MATCH(T)                                                          \
  KE_INLINE unsigned __match_any_sync(unsigned m, T v) {                     \
    return (unsigned)ke_warp(KE_MATCH_ANY, m, ke_device::to_bits(v), 0, 32); \
  }                                                                          \
  KE_INLINE unsigned __match_all_sync(unsigned m, T v, int* all) {           \
    unsigned r =                                                             \
        (unsigned)ke_warp(KE_MATCH_ALL, m, ke_device::to_bits(v), 0, 32);    \
    *all = r != 0;                                                           \
    return r;                                                                \
  }
// clang-format off
KE_MATCH(int) KE_MATCH(unsigned) KE_MATCH(long long)
KE_MATCH(unsigned long long) KE_MATCH(float) KE_MATCH(double);
// clang-format on
#undef KE_MATCH
#define KE_REDUCE(name, T, op)                                     \
  KE_INLINE T __reduce_##name##_sync(unsigned mask, T value) {     \
    return (T)ke_warp(op, mask, (uint64_t)(uint32_t)value, 0, 32); \
  }
KE_REDUCE(add, int, KE_REDUCE_ADD)
KE_REDUCE(add, unsigned, KE_REDUCE_ADD)
KE_REDUCE(min, int, KE_REDUCE_MIN)
KE_REDUCE(min, unsigned, KE_REDUCE_MIN_UNSIGNED)
KE_REDUCE(max, int, KE_REDUCE_MAX)
KE_REDUCE(max, unsigned, KE_REDUCE_MAX_UNSIGNED)
KE_REDUCE(and, unsigned, KE_REDUCE_AND)
KE_REDUCE(or, unsigned, KE_REDUCE_OR)
KE_REDUCE(xor, unsigned, KE_REDUCE_XOR)
#undef KE_REDUCE
