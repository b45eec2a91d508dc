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

#define __global__
#define __device__
#define __host__
// Sections of their own, so that the runtime finds them: only a host may store
// there. (Not `const`, which an uninitialised variable cannot have.)
#define KE_CONSTANT_IN(n) __attribute__((section(".ke_constant." #n)))
#define KE_CONSTANT(n) KE_CONSTANT_IN(n)
#define __constant__ KE_CONSTANT(__COUNTER__)
#define __managed__
#define __grid_constant__
#define __noinline__
#define __forceinline__ inline
#define __inline__ inline
#define __restrict__ __restrict
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
// Functions here are inlined even without optimisation: the instrumentation
// overlooks objects in memory that are handed to a call, and the address of a
// finding has to lead to the candidate's line.
// What these macros expand to in a candidate's text has names that a candidate
// cannot define (refusals.py), or it would change what they mean.
#define KE_ALWAYS_INLINE __attribute__((__always_inline__))
#define KE_MARK(text) __attribute__((__deprecated__(text)))  // host_code.py
#define KE_INLINE static inline KE_ALWAYS_INLINE

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

#define NULL __null

#include "device_traits.h"
#include "device_limits.h"
#include "device_vector.h"

// The runtime sets these before it resumes a thread. They are constant for as
// long as one thread runs, so a value kept in a register is always right.
// (The sizes are dim3 in CUDA, which has a constructor; a plain type keeps its
// loads from being checked.)
extern const uint3 threadIdx, blockIdx, blockDim, gridDim;
static constexpr int warpSize = 32;

// Barriers carry their line and a number of their own: threads that wait at two
// different barriers have diverged, although each of them waits.
extern "C" {
void ke_sync_block(int line, int place);
int ke_sync_block_reduce(int line, int place, int op, int predicate);
void ke_fence(int scope);
void ke_trap(int line);
void ke_assert_failed(const char* text, int line);
long long ke_clock();
}
#define __syncthreads() ke_sync_block(__LINE__, __COUNTER__)
#define __syncthreads_count(p) \
  ke_sync_block_reduce(__LINE__, __COUNTER__, 0, !!(p))
#define __syncthreads_and(p) \
  ke_sync_block_reduce(__LINE__, __COUNTER__, 1, !!(p))
#define __syncthreads_or(p) \
  ke_sync_block_reduce(__LINE__, __COUNTER__, 2, !!(p))
#define __trap() ke_trap(__LINE__)
#define assert(x) ((x) ? (void)0 : ke_assert_failed(#x, __LINE__))
KE_INLINE void __threadfence_block() { ke_fence(0); }
KE_INLINE void __threadfence() { ke_fence(1); }
KE_INLINE void __threadfence_system() { ke_fence(2); }
KE_INLINE void __nanosleep(unsigned) {}
KE_INLINE long long clock64() { return ke_clock(); }
KE_INLINE int clock() { return (int)ke_clock(); }
#define __builtin_assume(x) ((void)0)
#define __assume(x) ((void)0)
extern "C" int printf(const char* format, ...) __asm__("ke_printf");
// The linker sends these to the runtime, which checks the addresses.
extern "C" void* memcpy(void* to, const void* from, size_t bytes);
extern "C" void* memmove(void* to, const void* from, size_t bytes);
extern "C" void* memset(void* to, int value, size_t bytes);
// Known so that the linker can say that a kernel's heap is not supported.
extern "C" void* malloc(size_t bytes);
extern "C" void free(void* memory);

// `__shared__ float s[32];` is rewritten (cpu/translate.py) to a typedef, a
// static variable with a gap on either side, a reference to it and a record.
// The runtime hears of the record when a thread comes to the declaration.
struct ke_shared_record {
  const char* name;
  size_t bytes, element_bytes;
  int line;
  void* address;
  uint64_t block_serial;
  void* cells;
};
extern "C" void ke_enter_shared(ke_shared_record* record);
namespace ke_device {
template <class T>
struct ke_element {
  typedef T ke_item;
};
template <class T, size_t N>
struct ke_element<T[N]> {
  typedef typename ke_element<T>::ke_item ke_item;
};
}  // namespace ke_device
#define KE_SHARED(name, line)                                          \
  static_assert(__has_trivial_constructor(ke_type_##name),             \
                "a __shared__ variable cannot have an initializer");   \
  static struct {                                                      \
    alignas(16) char ke_before[64];                                    \
    ke_type_##name ke_variable;                                        \
    char ke_after[64];                                                 \
  } ke_home_##name;                                                    \
  static ke_type_##name& name = ke_home_##name.ke_variable;            \
  static ke_shared_record ke_record_##name = {                         \
      #name,                                                           \
      sizeof(ke_type_##name),                                          \
      sizeof(typename ke_device::ke_element<ke_type_##name>::ke_item), \
      line,                                                            \
      (void*)&ke_home_##name.ke_variable,                              \
      0,                                                               \
      nullptr}
// `extern __shared__ float s[];` becomes a reference to the runtime's array.
// The declaration stays under another name: two that differ are an error in
// CUDA.
extern "C" char ke_dynamic_arena[] __attribute__((aligned(1024)));
#define KE_DYNAMIC_SHARED(name)                      \
  typedef decltype(ke_extern_##name) ke_type_##name; \
  static ke_type_##name& name = (ke_type_##name&)ke_dynamic_arena

#include "device_math.h"
#include "device_integer.h"
#include "device_rounding.h"
#ifdef KE_WITH_HALF  // a third of all: most texts do without
#include "device_half.h"
#endif
#include "device_warp.h"
#include "device_atomic.h"
#include "device_launch.h"

// Device code on the CPU has no inline assembly, and a candidate may not take
// itself out of the checks.
#pragma GCC poison asm __asm __asm__ __attribute__ __attribute gnu __gnu__
#pragma GCC poison _Pragma

#endif
