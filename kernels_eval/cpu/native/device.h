// CUDA C++ device code on the CPU: the words of the language.
//
// This header is included before the candidate's text, and nothing else is:
// no system header is reachable (-nostdinc), so a candidate sees what a device
// compiler would offer and not the C library. The functions declared here live
// in runtime/; the linker refuses every other undefined symbol.
#ifndef KERNELS_EVAL_DEVICE_H
#define KERNELS_EVAL_DEVICE_H

#define __CUDA_ARCH__ 900
#define __CUDACC__ 1
#define __NVCC__ 1
#define KERNELS_EVAL_CPU 1

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline __attribute__((always_inline))
#define __inline__ inline
#define __restrict__ __restrict
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define KE_INLINE static inline __attribute__((always_inline))

typedef unsigned char uint8_t;
typedef signed char int8_t;
typedef unsigned short uint16_t;
typedef short int16_t;
typedef unsigned int uint32_t;
typedef int int32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INT64_TYPE__ int64_t;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef unsigned int uint;
typedef unsigned char uchar;
typedef unsigned short ushort;

namespace ke {
template <class A, class B>
struct same {
  static constexpr bool value = false;
};
template <class A>
struct same<A, A> {
  static constexpr bool value = true;
};
template <bool B, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  typedef T type;
};
}  // namespace ke

#include "device_vector.h"

// The runtime sets these before it resumes a thread. They are constant for as
// long as one thread runs, so a value kept in a register is always right.
extern const uint3 threadIdx, blockIdx;
extern const dim3 blockDim, gridDim;
static constexpr int warpSize = 32;

// Barriers carry their line: threads that wait at two different barriers have
// diverged, although each of them waits.
extern "C" {
void ke_sync_block(int line);
int ke_sync_block_reduce(int line, int op, int predicate);
void ke_fence(int scope);
int ke_printf(const char* format, ...);
void* ke_memcpy(void* to, const void* from, size_t bytes);
void* ke_memset(void* to, int value, size_t bytes);
void ke_trap(int line);
void ke_assert_failed(const char* text, int line);
long long ke_clock();
void* ke_dynamic_shared();
void* ke_shared_slow(struct ke_shared_variable* variable);
}
#define __syncthreads() ke_sync_block(__LINE__)
#define __syncthreads_count(p) ke_sync_block_reduce(__LINE__, 0, !!(p))
#define __syncthreads_and(p) ke_sync_block_reduce(__LINE__, 1, !!(p))
#define __syncthreads_or(p) ke_sync_block_reduce(__LINE__, 2, !!(p))
#define __trap() ke_trap(__LINE__)
#define assert(x) ((x) ? (void)0 : ke_assert_failed(#x, __LINE__))
KE_INLINE void __threadfence_block() { ke_fence(0); }
KE_INLINE void __threadfence() { ke_fence(1); }
KE_INLINE void __threadfence_system() { ke_fence(2); }
KE_INLINE void __nanosleep(unsigned) {}
KE_INLINE long long clock64() { return ke_clock(); }
KE_INLINE int clock() { return (int)ke_clock(); }
extern "C" int printf(const char* format, ...) __asm__("ke_printf");
#define memcpy ke_memcpy
#define memset ke_memset

// `__shared__ float s[32];` is rewritten (cpu/translate.py) to a typedef, one
// static record and a reference that `ke_shared` fills in. The record remembers
// where the variable lies for the current block.
extern "C" uint64_t ke_block_serial;
struct ke_shared_variable {
  const char* name;
  size_t bytes, align, element_bytes;
  int line;
  void* address;
  uint64_t block_serial;
};
namespace ke {
template <class T>
struct element {
  typedef T type;
};
template <class T, size_t N>
struct element<T[N]> {
  typedef typename element<T>::type type;
};
template <class T>
KE_INLINE T& shared(ke_shared_variable& v) {
  // Read through volatile: the record changes behind the optimiser's back.
  void* p = *(volatile uint64_t*)&v.block_serial ==
                    *(volatile uint64_t*)&ke_block_serial
                ? *(void* volatile*)&v.address
                : ke_shared_slow(&v);
  return *(T*)p;
}
template <class T>
KE_INLINE T* dynamic_shared() {
  return (T*)ke_dynamic_shared();
}
}  // namespace ke
#define KE_SHARED_RECORD(T, name, line)                                \
  {name, sizeof(T), alignof(T), sizeof(typename ke::element<T>::type), \
   line, nullptr,   0}

#include "device_math.h"
#include "device_integer.h"
#include "device_half.h"
#include "device_warp.h"
#include "device_atomic.h"
#include "device_launch.h"

// Device code on the CPU has no inline assembly, and a candidate may not take
// itself out of the checks.
#pragma GCC poison asm __asm __asm__ __attribute__ __attribute

#endif
