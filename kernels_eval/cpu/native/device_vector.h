// CUDA's vector types. The tables below are CUDA's own: which types exist, and
// the alignment of each.
#pragma once

#define KE_VEC1(T, N)   \
  struct T##1 { N x; }; \
  KE_INLINE T##1 make_##T##1(N x) { return T##1 {x}; }
#define KE_VEC2(T, N, A)                               \
  struct __attribute__((aligned(A))) T##2 { N x, y; }; \
  KE_INLINE T##2 make_##T##2(N x, N y) { return T##2 {x, y}; }
#define KE_VEC3(T, N)         \
  struct T##3 { N x, y, z; }; \
  KE_INLINE T##3 make_##T##3(N x, N y, N z) { return T##3 {x, y, z}; }
#define KE_VEC4(T, N, A)                                     \
  struct __attribute__((aligned(A))) T##4 { N x, y, z, w; }; \
  KE_INLINE T##4 make_##T##4(N x, N y, N z, N w) { return T##4 {x, y, z, w}; }
#define KE_VEC(T, N, A2, A4) \
  KE_VEC1(T, N) KE_VEC2(T, N, A2) KE_VEC3(T, N) KE_VEC4(T, N, A4)

KE_VEC(char, signed char, 2, 4)
KE_VEC(uchar, unsigned char, 2, 4)
KE_VEC(short, short, 4, 8)
KE_VEC(ushort, unsigned short, 4, 8)
KE_VEC(int, int, 8, 16)
KE_VEC(uint, unsigned int, 8, 16)
KE_VEC(long, long, 16, 16)
KE_VEC(ulong, unsigned long, 16, 16)
KE_VEC(longlong, long long, 16, 16)
KE_VEC(ulonglong, unsigned long long, 16, 16)
KE_VEC(float, float, 8, 16)
KE_VEC(double, double, 16, 16)

struct dim3 {
  unsigned x, y, z;
  KE_ALWAYS_INLINE constexpr dim3(unsigned a = 1, unsigned b = 1,
                                  unsigned c = 1)
      : x(a), y(b), z(c) {}
  KE_ALWAYS_INLINE constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  KE_ALWAYS_INLINE constexpr operator uint3() const { return uint3{x, y, z}; }
};
