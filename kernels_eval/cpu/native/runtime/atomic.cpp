// Atomics run one at a time (one thread runs at a time), so plain arithmetic
// is atomic here; what matters is the check of the address.
#include <string.h>

#include "../device_ops.h"
#include "../small_float.h"
#include "runtime.h"

namespace ke {

namespace {

template <class T>
T apply(int op, T old, T value, T compare) {
  switch (op) {
    case KE_ADD:
      return (T)(old + value);
    case KE_EXCH:
      return value;
    case KE_MIN:
      return value < old ? value : old;
    case KE_MAX:
      return value > old ? value : old;
    case KE_INC:
      return old >= value ? T(0) : T(old + T(1));
    case KE_DEC:
      return old == T(0) || old > value ? value : T(old - T(1));
    default:  // KE_CAS
      return old == compare ? value : old;
  }
}

template <class T>
T apply_bits(int op, T old, T value) {
  return op == KE_AND ? old & value : op == KE_OR ? old | value : old ^ value;
}

template <class T>
T take(uint64_t bits) {
  T v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

template <class T, bool kBits>
uint64_t update(int op, void* address, uint64_t value, uint64_t compare,
                void* pc) {
  check_atomic(address, sizeof(T), op == KE_EXCH, pc);
  T old, next;
  memcpy(&old, address, sizeof old);
  if constexpr (kBits) {
    if (op == KE_AND || op == KE_OR || op == KE_XOR)
      next = apply_bits<T>(op, old, take<T>(value));
    else
      next = apply<T>(op, old, take<T>(value), take<T>(compare));
  } else {
    next = apply<T>(op, old, take<T>(value), take<T>(compare));
  }
  memcpy(address, &next, sizeof next);
  uint64_t bits = 0;
  memcpy(&bits, &old, sizeof old);
  return bits;
}

template <float (*Widen)(uint16_t), uint16_t (*Narrow)(float)>
uint64_t add_small(void* address, uint64_t value, void* pc) {
  check_atomic(address, 2, false, pc);
  uint16_t old;
  memcpy(&old, address, 2);
  uint16_t next = Narrow(Widen(old) + Widen((uint16_t)value));
  memcpy(address, &next, 2);
  return old;
}

}  // namespace

extern "C" uint64_t ke_atomic(int op, int type, void* address, uint64_t value,
                              uint64_t compare) {
  void* pc = __builtin_return_address(0);
  switch (type) {
    case KE_I32:
      return update<int32_t, true>(op, address, value, compare, pc);
    case KE_U32:
      return update<uint32_t, true>(op, address, value, compare, pc);
    case KE_I64:
      return update<int64_t, true>(op, address, value, compare, pc);
    case KE_U64:
      return update<uint64_t, true>(op, address, value, compare, pc);
    case KE_F32:
      return update<float, false>(op, address, value, compare, pc);
    case KE_F64:
      return update<double, false>(op, address, value, compare, pc);
    case KE_U16:
      return update<uint16_t, true>(op, address, value, compare, pc);
    case KE_F16:
      return add_small<ke_device::half_to_float, ke_device::float_to_half>(
          address, value, pc);
    default:  // KE_BF16
      return add_small<ke_device::bfloat16_to_float,
                       ke_device::float_to_bfloat16>(address, value, pc);
  }
}

}  // namespace ke
