// Floating-point mathematics: C names, float names, C++ overloads and CUDA's
// intrinsics. The CPU's library is at least as exact as the device's, so an
// intrinsic such as __expf is the exact function here.
#pragma once

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_inff()
#define HUGE_VAL __builtin_inf()
#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_INF __builtin_inf()
#define CUDART_NAN __builtin_nan("")
#define CUDART_PI_F 3.141592654f
#define CUDART_PI 3.1415926535897931e+0
#define CUDART_MAX_NORMAL_F 3.402823466e38f
#define CUDART_MIN_DENORM_F 1.401298464e-45f
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define M_2_SQRTPI 1.12837916709551257390
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define FLT_DIG __FLT_DIG__
#define FLT_MANT_DIG __FLT_MANT_DIG__
#define DBL_MAX __DBL_MAX__
#define DBL_MIN __DBL_MIN__
#define DBL_EPSILON __DBL_EPSILON__

// name, in double and float; the float version carries an f.
#define KE_UNARY(name)             \
  extern "C" double name(double);  \
  extern "C" float name##f(float); \
  static inline float name(float x) { return name##f(x); }
#define KE_BINARY(name)                   \
  extern "C" double name(double, double); \
  extern "C" float name##f(float, float); \
  static inline float name(float x, float y) { return name##f(x, y); }
// clang-format off
KE_UNARY(sin) KE_UNARY(cos) KE_UNARY(tan) KE_UNARY(asin) KE_UNARY(acos)
KE_UNARY(atan) KE_UNARY(sinh) KE_UNARY(cosh) KE_UNARY(tanh) KE_UNARY(asinh)
KE_UNARY(acosh) KE_UNARY(atanh) KE_UNARY(exp) KE_UNARY(exp2) KE_UNARY(expm1)
KE_UNARY(log) KE_UNARY(log2) KE_UNARY(log10) KE_UNARY(log1p) KE_UNARY(sqrt)
KE_UNARY(cbrt) KE_UNARY(floor) KE_UNARY(ceil) KE_UNARY(round) KE_UNARY(trunc)
KE_UNARY(rint) KE_UNARY(nearbyint) KE_UNARY(erf) KE_UNARY(erfc)
KE_UNARY(lgamma) KE_UNARY(tgamma) KE_UNARY(fabs)
KE_BINARY(pow) KE_BINARY(fmod) KE_BINARY(atan2) KE_BINARY(hypot)
KE_BINARY(fmax) KE_BINARY(fmin) KE_BINARY(fdim) KE_BINARY(copysign)
KE_BINARY(remainder) KE_BINARY(nextafter)
// clang-format on
#undef KE_UNARY
#undef KE_BINARY
                                                    extern "C" {
  double fma(double, double, double);
  float fmaf(float, float, float);
  double ldexp(double, int);
  float ldexpf(float, int);
  double frexp(double, int*);
  float frexpf(float, int*);
  double modf(double, double*);
  float modff(float, float*);
  long lround(double);
  long lroundf(float);
  long lrint(double);
  long lrintf(float);
  int ilogb(double);
  int ilogbf(float);
  double scalbn(double, int);
  float scalbnf(float, int);
}
static inline float fma(float a, float b, float c) { return fmaf(a, b, c); }
static inline float ldexp(float x, int e) { return ldexpf(x, e); }

static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float rsqrt(float x) { return rsqrtf(x); }
static inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
static inline double rcbrt(double x) { return 1.0 / cbrt(x); }
static inline float exp10f(float x) { return powf(10.0f, x); }
static inline double exp10(double x) { return pow(10.0, x); }
static inline float exp10(float x) { return exp10f(x); }
static inline float sinpif(float x) { return (float)sin(M_PI * (double)x); }
static inline float cospif(float x) { return (float)cos(M_PI * (double)x); }
static inline double sinpi(double x) { return sin(M_PI * x); }
static inline double cospi(double x) { return cos(M_PI * x); }
static inline void sincosf(float x, float* s, float* c) {
  *s = sinf(x);
  *c = cosf(x);
}
static inline void sincos(double x, double* s, double* c) {
  *s = sin(x);
  *c = cos(x);
}
static inline void sincospif(float x, float* s, float* c) {
  *s = sinpif(x);
  *c = cospif(x);
}
static inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678f); }
static inline double normcdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }
static inline float fdividef(float a, float b) { return a / b; }
static inline float norm3df(float a, float b, float c) {
  return sqrtf(a * a + b * b + c * c);
}
static inline float rhypotf(float a, float b) { return 1.0f / hypotf(a, b); }
static inline float __saturatef(float x) {
  return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
}

static inline bool isnan(float x) { return __builtin_isnan(x); }
static inline bool isnan(double x) { return __builtin_isnan(x); }
static inline bool isinf(float x) { return __builtin_isinf(x); }
static inline bool isinf(double x) { return __builtin_isinf(x); }
static inline bool isfinite(float x) { return __builtin_isfinite(x); }
static inline bool isfinite(double x) { return __builtin_isfinite(x); }
static inline bool signbit(float x) { return __builtin_signbit(x); }
static inline bool signbit(double x) { return __builtin_signbit(x); }

// Fast and rounding-mode intrinsics.
static inline float __expf(float x) { return expf(x); }
static inline float __exp10f(float x) { return exp10f(x); }
static inline float __logf(float x) { return logf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __log10f(float x) { return log10f(x); }
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline float __tanf(float x) { return tanf(x); }
static inline float __tanhf(float x) { return tanhf(x); }
static inline float __powf(float x, float y) { return powf(x, y); }
static inline float __fdividef(float a, float b) { return a / b; }
static inline void __sincosf(float x, float* s, float* c) { sincosf(x, s, c); }
#define KE_ROUNDED(m)                                                   \
  static inline float __fadd_##m(float a, float b) { return a + b; }    \
  static inline float __fsub_##m(float a, float b) { return a - b; }    \
  static inline float __fmul_##m(float a, float b) { return a * b; }    \
  static inline float __fdiv_##m(float a, float b) { return a / b; }    \
  static inline float __frcp_##m(float a) { return 1.0f / a; }          \
  static inline float __fsqrt_##m(float a) { return sqrtf(a); }         \
  static inline float __fmaf_##m(float a, float b, float c) {           \
    return fmaf(a, b, c);                                               \
  }                                                                     \
  static inline double __dadd_##m(double a, double b) { return a + b; } \
  static inline double __dmul_##m(double a, double b) { return a * b; } \
  static inline double __ddiv_##m(double a, double b) { return a / b; } \
  static inline double __dsqrt_##m(double a) { return sqrt(a); }        \
  static inline double __fma_##m(double a, double b, double c) {        \
    return fma(a, b, c);                                                \
  }
KE_ROUNDED(rn)
KE_ROUNDED(rz)
KE_ROUNDED(ru) KE_ROUNDED(rd)
#undef KE_ROUNDED
    static inline float __frsqrt_rn(float x) {
  return rsqrtf(x);
}

// min, max and abs take each arithmetic type, mixed integers included.
#define KE_MINMAX(T)                                      \
  static inline T min(T a, T b) { return b < a ? b : a; } \
  static inline T max(T a, T b) { return a < b ? b : a; }
// clang-format off
KE_MINMAX(int) KE_MINMAX(unsigned) KE_MINMAX(long) KE_MINMAX(unsigned long)
KE_MINMAX(long long) KE_MINMAX(unsigned long long)
// clang-format on
#undef KE_MINMAX
        static inline unsigned min(unsigned a, int b) {
  return min(a, (unsigned)b);
}
static inline unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
static inline unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
static inline unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) {
  return fmin((double)a, (double)b);
}
static inline double max(double a, double b) {
  return fmax((double)a, (double)b);
}
static inline double min(float a, double b) {
  return fmin((double)a, (double)b);
}
static inline double min(double a, float b) {
  return fmin((double)a, (double)b);
}
static inline double max(float a, double b) {
  return fmax((double)a, (double)b);
}
static inline double max(double a, float b) {
  return fmax((double)a, (double)b);
}
static inline int abs(int x) { return x < 0 ? -x : x; }
static inline long abs(long x) { return x < 0 ? -x : x; }
static inline long long abs(long long x) { return x < 0 ? -x : x; }
static inline float abs(float x) { return __builtin_fabsf(x); }
static inline double abs(double x) { return __builtin_fabs(x); }
static inline long labs(long x) { return abs(x); }
static inline long long llabs(long long x) { return abs(x); }

// An integer argument means the double function, as in C++.
#define KE_OF_INTEGER(f) \
  static inline double f(int x) { return f((double)x); }
// clang-format off
KE_OF_INTEGER(sqrt) KE_OF_INTEGER(exp) KE_OF_INTEGER(log) KE_OF_INTEGER(sin)
KE_OF_INTEGER(cos) KE_OF_INTEGER(floor) KE_OF_INTEGER(ceil) KE_OF_INTEGER(log2)
KE_OF_INTEGER(fabs) KE_OF_INTEGER(tanh)
// clang-format on
#undef KE_OF_INTEGER
            static inline double pow(double x, int y) {
  return pow(x, (double)y);
}
static inline float pow(float x, int y) { return powf(x, (float)y); }
static inline double pow(float x, double y) { return pow((double)x, y); }
static inline double pow(double x, float y) { return pow(x, (double)y); }
static inline double pow(int x, double y) { return pow((double)x, y); }
static inline double pow(int x, int y) { return pow((double)x, (double)y); }
static inline double fmax(float a, double b) { return fmax((double)a, b); }
static inline double fmax(double a, float b) { return fmax(a, (double)b); }
static inline double fmin(float a, double b) { return fmin((double)a, b); }
static inline double fmin(double a, float b) { return fmin(a, (double)b); }

namespace std {
// clang-format off
using ::abs; using ::acos; using ::asin; using ::atan; using ::atan2;
using ::ceil; using ::cos; using ::cosh; using ::erf; using ::exp; using ::exp2;
using ::expm1; using ::fabs; using ::floor; using ::fma; using ::fmax;
using ::fmin; using ::fmod; using ::hypot; using ::isfinite; using ::isinf;
using ::isnan; using ::log; using ::log10; using ::log1p; using ::log2;
using ::max; using ::min; using ::pow; using ::rint; using ::round; using ::sin;
using ::sinh; using ::sqrt; using ::tan; using ::tanh; using ::trunc;
using ::size_t; using ::ptrdiff_t; using ::int8_t; using ::int16_t;
using ::int32_t; using ::int64_t; using ::uint8_t; using ::uint16_t;
using ::uint32_t; using ::uint64_t;
// clang-format on
}  // namespace std
