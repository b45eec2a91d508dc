// libdevice (__nv_sinf and its kin) for Numba kernels, whose IR calls it by
// name: the functions of the device headers under libdevice's names, and what
// Numba's print() needs. Part of the runtime library.
#include "device.h"
#include "small_float.h"

static bool ends_conversion(char c) {
  for (const char* p = "diuxXfegcsp%"; *p; p++)
    if (*p == c) return true;
  return false;
}

#define D double
#define F float
#define I int
#define U unsigned
#define L long long
#define W unsigned long long
// name of libdevice, result, parameters, expression
#define KE_1(name, R, A, f) \
  extern "C" R __nv_##name(A x) { return (R)f(x); }
#define KE_2(name, R, A, B, f) \
  extern "C" R __nv_##name(A x, B y) { return (R)f(x, y); }
#define KE_3(name, R, A, f) \
  extern "C" R __nv_##name(A x, A y, A z) { return (R)f(x, y, z); }
#define KE_DD(n) KE_1(n, D, D, n) KE_1(n##f, F, F, n##f)
#define KE_DDD(n) KE_2(n, D, D, D, n) KE_2(n##f, F, F, F, n##f)

// clang-format off
KE_DD(acos) KE_DD(acosh) KE_DD(asin) KE_DD(asinh) KE_DD(atan) KE_DD(atanh)
KE_DD(cbrt) KE_DD(ceil) KE_DD(cos) KE_DD(cosh) KE_DD(cospi) KE_DD(erf)
KE_DD(erfc) KE_DD(erfcinv) KE_DD(erfcx) KE_DD(erfinv) KE_DD(exp) KE_DD(exp10)
KE_DD(exp2) KE_DD(expm1) KE_DD(fabs) KE_DD(floor) KE_DD(j0) KE_DD(j1)
KE_DD(lgamma) KE_DD(log) KE_DD(log10) KE_DD(log1p) KE_DD(log2) KE_DD(logb)
KE_DD(nearbyint) KE_DD(normcdf) KE_DD(normcdfinv) KE_DD(rcbrt) KE_DD(rint)
KE_DD(round) KE_DD(rsqrt) KE_DD(sin) KE_DD(sinh) KE_DD(sinpi) KE_DD(sqrt)
KE_DD(tan) KE_DD(tanh) KE_DD(tgamma) KE_DD(trunc) KE_DD(y0) KE_DD(y1)
KE_DDD(atan2) KE_DDD(copysign) KE_DDD(fdim) KE_DDD(fmax) KE_DDD(fmin)
KE_DDD(fmod) KE_DDD(hypot) KE_DDD(nextafter) KE_DDD(pow) KE_DDD(remainder)
KE_1(fast_cosf, F, F, cosf) KE_1(fast_exp10f, F, F, exp10f)
KE_1(fast_expf, F, F, expf) KE_1(fast_log10f, F, F, log10f)
KE_1(fast_log2f, F, F, log2f) KE_1(fast_logf, F, F, logf)
KE_1(fast_sinf, F, F, sinf) KE_1(fast_tanf, F, F, tanf)
KE_1(saturatef, F, F, __saturatef) KE_1(frsqrt_rn, F, F, rsqrtf)
KE_2(fast_fdividef, F, F, F, fdividef) KE_2(fast_powf, F, F, F, powf)

#define KE_MODES(m)                                                         \
  KE_2(dadd_##m, D, D, D, __dadd_##m) KE_2(dmul_##m, D, D, D, __dmul_##m)   \
  KE_2(ddiv_##m, D, D, D, __ddiv_##m) KE_1(drcp_##m, D, D, __drcp_##m)      \
  KE_1(dsqrt_##m, D, D, __dsqrt_##m) KE_2(fadd_##m, F, F, F, __fadd_##m)    \
  KE_2(fsub_##m, F, F, F, __fsub_##m) KE_2(fmul_##m, F, F, F, __fmul_##m)   \
  KE_2(fdiv_##m, F, F, F, __fdiv_##m) KE_1(frcp_##m, F, F, __frcp_##m)      \
  KE_1(fsqrt_##m, F, F, __fsqrt_##m) KE_3(fmaf_##m, F, F, __fmaf_##m)       \
  KE_1(double2float_##m, F, D, __double2float_##m)                          \
  KE_1(double2int_##m, I, D, __double2int_##m)                              \
  KE_1(double2uint_##m, U, D, __double2uint_##m)                            \
  KE_1(double2ll_##m, L, D, __double2ll_##m)                                \
  KE_1(double2ull_##m, W, D, __double2ull_##m)                              \
  KE_1(float2int_##m, I, F, __float2int_##m)                                \
  KE_1(float2uint_##m, U, F, __float2uint_##m)                              \
  KE_1(float2ll_##m, L, F, __float2ll_##m)                                  \
  KE_1(float2ull_##m, W, F, __float2ull_##m)                                \
  KE_1(int2float_##m, F, I, __int2float_##m)                                \
  KE_1(uint2float_##m, F, U, __uint2float_##m)                              \
  KE_1(ll2float_##m, F, L, __ll2float_##m)                                  \
  KE_1(ull2float_##m, F, W, __ull2float_##m)                                \
  KE_1(ll2double_##m, D, L, __ll2double_##m)                                \
  KE_1(ull2double_##m, D, W, __ull2double_##m)
KE_MODES(rn) KE_MODES(rz) KE_MODES(ru) KE_MODES(rd)

KE_1(abs, I, I, abs) KE_1(llabs, L, L, abs) KE_1(brev, U, U, __brev)
KE_1(brevll, W, W, __brevll) KE_1(clz, I, I, __clz) KE_1(clzll, I, L, __clzll)
KE_1(ffs, I, I, __ffs) KE_1(ffsll, I, L, __ffsll) KE_1(popc, I, U, __popc)
KE_1(popcll, I, W, __popcll) KE_3(byte_perm, U, U, __byte_perm)
KE_3(sad, U, I, __sad) KE_3(usad, U, U, __usad) KE_2(hadd, I, I, I, __hadd)
KE_2(max, I, I, I, max) KE_2(min, I, I, I, min) KE_2(umax, U, U, U, max)
KE_2(umin, U, U, U, min) KE_2(llmax, L, L, L, max) KE_2(llmin, L, L, L, min)
KE_2(ullmax, W, W, W, max) KE_2(ullmin, W, W, W, min)
KE_2(mul24, I, I, I, __mul24) KE_2(umul24, U, U, U, __umul24)
KE_2(mulhi, I, I, I, __mulhi) KE_2(umulhi, U, U, U, __umulhi)
KE_2(mul64hi, L, L, L, __mul64hi) KE_2(umul64hi, W, W, W, __umul64hi)
KE_2(rhadd, I, I, I, __rhadd) KE_2(uhadd, U, U, U, __uhadd)
KE_2(urhadd, U, U, U, __urhadd)
KE_1(double2hiint, I, D, __double2hiint)
KE_1(double2loint, I, D, __double2loint)
KE_1(double_as_longlong, L, D, __double_as_longlong)
KE_1(longlong_as_double, D, L, __longlong_as_double)
KE_1(float_as_int, I, F, __float_as_int) KE_1(int_as_float, F, I, __int_as_float)
KE_2(hiloint2double, D, I, I, __hiloint2double)
KE_1(int2double_rn, D, I, __int2double_rn)
KE_1(uint2double_rn, D, U, __uint2double_rn)
KE_1(ilogb, I, D, ilogb) KE_1(ilogbf, I, F, ilogbf)
KE_1(isfinited, I, D, isfinite) KE_1(isinfd, I, D, isinf)
KE_1(isnand, I, D, isnan) KE_1(signbitd, I, D, signbit)
KE_1(finitef, I, F, isfinite) KE_1(isinff, I, F, isinf)
KE_1(isnanf, I, F, isnan) KE_1(signbitf, I, F, signbit)
KE_1(llrint, L, D, llrint) KE_1(llrintf, L, F, llrintf)
KE_1(llround, L, D, llround) KE_1(llroundf, L, F, llroundf)
KE_3(fma, D, D, fma) KE_3(fmaf, F, F, fmaf) KE_3(fma_rn, D, D, fma)
KE_2(jn, D, I, D, jn) KE_2(jnf, F, I, F, jnf) KE_2(yn, D, I, D, yn)
KE_2(ynf, F, I, F, ynf) KE_2(ldexp, D, D, I, ldexp)
KE_2(ldexpf, F, F, I, ldexpf) KE_2(powi, D, D, I, pow)
KE_2(powif, F, F, I, pow) KE_2(scalbn, D, D, I, scalbn)
KE_2(scalbnf, F, F, I, scalbnf)
    // clang-format on

    extern "C" {
  // Second results go to variables of the candidate's frame.
  double __nv_frexp(double x, int* e) { return frexp(x, e); }
  float __nv_frexpf(float x, int* e) { return frexpf(x, e); }
  double __nv_modf(double x, double* whole) { return modf(x, whole); }
  float __nv_modff(float x, float* whole) { return modff(x, whole); }
  double __nv_remquo(double x, double y, int* q) { return remquo(x, y, q); }
  float __nv_remquof(float x, float y, int* q) { return remquof(x, y, q); }
  void __nv_sincos(double x, double* s, double* c) { sincos(x, s, c); }
  void __nv_sincosf(float x, float* s, float* c) { sincosf(x, s, c); }
  void __nv_fast_sincosf(float x, float* s, float* c) { sincosf(x, s, c); }
  void __nv_sincospi(double x, double* s, double* c) { sincospi(x, s, c); }
  void __nv_sincospif(float x, float* s, float* c) { sincospif(x, s, c); }
  float __nv_half2float(short h) {
    return ke_device::half_to_float((unsigned short)h);
  }
  short __nv_float2half_rn(float x) {
    return (short)ke_device::float_to_half(x);
  }
  float ke_half_to_float(unsigned short h) {
    return ke_device::half_to_float(h);
  }
  unsigned short ke_float_to_half(float x) {
    return ke_device::float_to_half(x);
  }

  // Numba hands over a packed struct in place of a list of arguments.
  int ke_vprintf(const char* format, const char* at) {
    char piece[64];
    while (*format) {
      int n = 0;
      const char* p = format;
      if (*p != '%') {
        while (*p && *p != '%' && n < 62) piece[n++] = *p++;
        piece[n] = 0;
        printf("%s", piece);
        format = p;
        continue;
      }
      bool is_long = false;
      do {
        piece[n++] = *p;
        is_long |= *p == 'l';
      } while (n < 62 && *p++ && *p && !ends_conversion(*p));
      if (!*p) break;
      piece[n++] = *p;
      piece[n] = 0;
      format = p + 1;
      if (*p == '%') {
        printf("%s", "%");
        continue;
      }
      bool is_double = *p == 'f' || *p == 'e' || *p == 'g';
      size_t size = *p == 's' || *p == 'p' || is_double || is_long ? 8 : 4;
      at = (const char*)(((size_t)at + size - 1) / size * size);
      if (is_double)
        printf(piece, *(const double*)at);
      else if (size == 8)
        printf(piece, *(const long long*)at);
      else
        printf(piece, *(const int*)at);
      at += size;
    }
    return 0;
  }
}
