// Atomics. The runtime checks the address, remembers that the access was
// atomic (two atomics never race) and returns the old value.
#pragma once

#include "device_ops.h"

extern "C" uint64_t ke_atomic(int op, int type, void* address, uint64_t value,
                              uint64_t compare);

namespace ke_device {
template <class T>
KE_INLINE T atomic(int op, int type, T* p, T value, T compare) {
  return from_bits<T>(
      ke_atomic(op, type, (void*)p, to_bits(value), to_bits(compare)));
}
}  // namespace ke_device

#define KE_ATOMIC(name, op, T, type)                         \
  KE_INLINE T name(T* p, T v) {                              \
    return ke_device::atomic<T>(op, type, p, v, v);          \
  }                                                          \
  KE_INLINE T name##_block(T* p, T v) { return name(p, v); } \
  KE_INLINE T name##_system(T* p, T v) { return name(p, v); }
typedef unsigned long long ke_u64;
typedef long long ke_i64;
KE_ATOMIC(atomicAdd, KE_ADD, int, KE_I32)
KE_ATOMIC(atomicAdd, KE_ADD, unsigned, KE_U32)
KE_ATOMIC(atomicAdd, KE_ADD, ke_u64, KE_U64)
KE_ATOMIC(atomicAdd, KE_ADD, float, KE_F32)
KE_ATOMIC(atomicAdd, KE_ADD, double, KE_F64)
#ifdef KE_WITH_HALF
KE_ATOMIC(atomicAdd, KE_ADD, __half, KE_F16)
KE_ATOMIC(atomicAdd, KE_ADD, __nv_bfloat16, KE_BF16)
#endif
KE_ATOMIC(atomicExch, KE_EXCH, int, KE_I32)
KE_ATOMIC(atomicExch, KE_EXCH, unsigned, KE_U32)
KE_ATOMIC(atomicExch, KE_EXCH, ke_u64, KE_U64)
KE_ATOMIC(atomicExch, KE_EXCH, float, KE_F32)
KE_ATOMIC(atomicMin, KE_MIN, int, KE_I32)
KE_ATOMIC(atomicMin, KE_MIN, unsigned, KE_U32)
KE_ATOMIC(atomicMin, KE_MIN, ke_i64, KE_I64)
KE_ATOMIC(atomicMin, KE_MIN, ke_u64, KE_U64)
KE_ATOMIC(atomicMax, KE_MAX, int, KE_I32)
KE_ATOMIC(atomicMax, KE_MAX, unsigned, KE_U32)
KE_ATOMIC(atomicMax, KE_MAX, ke_i64, KE_I64)
KE_ATOMIC(atomicMax, KE_MAX, ke_u64, KE_U64)
KE_ATOMIC(atomicAnd, KE_AND, int, KE_I32)
KE_ATOMIC(atomicAnd, KE_AND, unsigned, KE_U32)
KE_ATOMIC(atomicAnd, KE_AND, ke_u64, KE_U64)
KE_ATOMIC(atomicOr, KE_OR, int, KE_I32)
KE_ATOMIC(atomicOr, KE_OR, unsigned, KE_U32)
KE_ATOMIC(atomicOr, KE_OR, ke_u64, KE_U64)
KE_ATOMIC(atomicXor, KE_XOR, int, KE_I32)
KE_ATOMIC(atomicXor, KE_XOR, unsigned, KE_U32)
KE_ATOMIC(atomicXor, KE_XOR, ke_u64, KE_U64)
KE_ATOMIC(atomicInc, KE_INC, unsigned, KE_U32)
KE_ATOMIC(atomicDec, KE_DEC, unsigned, KE_U32);
#undef KE_ATOMIC
KE_INLINE int atomicSub(int* p, int v) {
  return ke_device::atomic<int>(KE_ADD, KE_I32, p, -v, 0);
}
KE_INLINE unsigned atomicSub(unsigned* p, unsigned v) {
  return ke_device::atomic<unsigned>(KE_ADD, KE_U32, p, 0u - v, 0u);
}
KE_INLINE int atomicSub_block(int* p, int v) { return atomicSub(p, v); }
KE_INLINE int atomicSub_system(int* p, int v) { return atomicSub(p, v); }
KE_INLINE unsigned atomicSub_block(unsigned* p, unsigned v) {
  return atomicSub(p, v);
}
KE_INLINE unsigned atomicSub_system(unsigned* p, unsigned v) {
  return atomicSub(p, v);
}
#define KE_CAS(T, type)                                       \
  KE_INLINE T atomicCAS(T* p, T compare, T v) {               \
    return ke_device::atomic<T>(KE_CAS, type, p, v, compare); \
  }                                                           \
  KE_INLINE T atomicCAS_block(T* p, T compare, T v) {         \
    return atomicCAS(p, compare, v);                          \
  }                                                           \
  KE_INLINE T atomicCAS_system(T* p, T compare, T v) {        \
    return atomicCAS(p, compare, v);                          \
  }
KE_CAS(int, KE_I32)
KE_CAS(unsigned, KE_U32)
KE_CAS(ke_u64, KE_U64)
KE_CAS(unsigned short, KE_U16);
#undef KE_CAS
#ifdef KE_WITH_HALF
// Vector atomics add each element atomically, not the pair as one.
KE_INLINE __half2 atomicAdd(__half2* p, __half2 v) {
  return __half2(atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y));
}
KE_INLINE __nv_bfloat162 atomicAdd(__nv_bfloat162* p, __nv_bfloat162 v) {
  return __nv_bfloat162(atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y));
}
#endif
