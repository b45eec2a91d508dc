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
  KE_INLINE float name(float x) { return name##f(x); }
#define KE_BINARY(name)                   \
  extern "C" double name(double, double); \
  extern "C" float name##f(float, float); \
  KE_INLINE float name(float x, float y) { return name##f(x, y); }
// clang-format off
KE_UNARY(sin) KE_UNARY(cos) KE_UNARY(tan) KE_UNARY(asin) KE_UNARY(acos)
KE_UNARY(atan) KE_UNARY(sinh) KE_UNARY(cosh) KE_UNARY(tanh) KE_UNARY(asinh)
KE_UNARY(acosh) KE_UNARY(atanh) KE_UNARY(exp) KE_UNARY(exp2) KE_UNARY(expm1)
KE_UNARY(log) KE_UNARY(log2) KE_UNARY(log10) KE_UNARY(log1p) KE_UNARY(sqrt)
KE_UNARY(cbrt) KE_UNARY(floor) KE_UNARY(ceil) KE_UNARY(round) KE_UNARY(trunc)
KE_UNARY(rint) KE_UNARY(nearbyint) KE_UNARY(erf) KE_UNARY(erfc)
KE_UNARY(lgamma) KE_UNARY(tgamma) KE_UNARY(fabs) KE_UNARY(logb)
KE_BINARY(pow) KE_BINARY(fmod) KE_BINARY(atan2) KE_BINARY(hypot)
KE_BINARY(fmax) KE_BINARY(fmin) KE_BINARY(fdim) KE_BINARY(copysign)
KE_BINARY(remainder) KE_BINARY(nextafter);
// clang-format on
#undef KE_UNARY
#undef KE_BINARY
extern "C" {
double fma(double, double, double);
float fmaf(float, float, float);
double ldexp(double, int);
float ldexpf(float, int);
double ke_frexp(double, int*) __asm__("frexp");
double ke_modf(double, double*) __asm__("modf");
float ke_modff(float, float*) __asm__("modff");
long lround(double);
long lroundf(float);
long lrint(double);
long lrintf(float);
int ilogb(double);
int ilogbf(float);
double scalbn(double, int);
float scalbnf(float, int);
double scalbln(double, long);
float scalblnf(float, long);
long long llround(double);
long long llroundf(float);
long long llrint(double);
long long llrintf(float);
double ke_remquo(double, double, int*) __asm__("remquo");
float ke_remquof(float, float, int*) __asm__("remquof");
double j0(double);
double j1(double);
double jn(int, double);
double y0(double);
double y1(double);
double yn(int, double);
double nan(const char*);
float nanf(const char*);
}
KE_INLINE float fma(float a, float b, float c) { return fmaf(a, b, c); }
KE_INLINE float ldexp(float x, int e) { return ldexpf(x, e); }
// The library would write through a candidate's pointer unchecked.
#define KE_SECOND_RESULT(name, function, T, Second, parameters, arguments) \
  KE_INLINE T name(parameters, Second* second) {                           \
    Second s;                                                              \
    T result = function(arguments, &s);                                    \
    *second = s;                                                           \
    return result;                                                         \
  }
#define KE_PAIR(T) T x, T y
#define KE_XY x, y
KE_SECOND_RESULT(frexp, ke_frexp, double, int, double x, x)
KE_SECOND_RESULT(frexp, (float)ke_frexp, float, int, float x, x)
KE_SECOND_RESULT(frexpf, (float)ke_frexp, float, int, float x, x)
KE_SECOND_RESULT(modf, ke_modf, double, double, double x, x)
KE_SECOND_RESULT(modf, ke_modff, float, float, float x, x)
KE_SECOND_RESULT(modff, ke_modff, float, float, float x, x)
KE_SECOND_RESULT(remquo, ke_remquo, double, int, KE_PAIR(double), KE_XY)
KE_SECOND_RESULT(remquof, ke_remquof, float, int, KE_PAIR(float), KE_XY);
#undef KE_XY
#undef KE_PAIR
#undef KE_SECOND_RESULT
KE_INLINE float scalbn(float x, int e) { return scalbnf(x, e); }
KE_INLINE long lround(float x) { return lroundf(x); }
KE_INLINE long lrint(float x) { return lrintf(x); }
KE_INLINE long long llround(float x) { return llroundf(x); }
KE_INLINE long long llrint(float x) { return llrintf(x); }
KE_INLINE int ilogb(float x) { return ilogbf(x); }

KE_INLINE float rsqrtf(float x) { return 1.0f / sqrtf(x); }
KE_INLINE double rsqrt(double x) { return 1.0 / sqrt(x); }
KE_INLINE float rsqrt(float x) { return rsqrtf(x); }
KE_INLINE float rcbrtf(float x) { return 1.0f / cbrtf(x); }
KE_INLINE double rcbrt(double x) { return 1.0 / cbrt(x); }
KE_INLINE float exp10f(float x) { return powf(10.0f, x); }
KE_INLINE double exp10(double x) { return pow(10.0, x); }
KE_INLINE float exp10(float x) { return exp10f(x); }
// Exact at whole and half numbers, however large.
KE_INLINE double sinpi(double x) {
  double r = x - 2.0 * rint(0.5 * x);
  return r == rint(r) ? 0.0 * x : sin(M_PI * r);
}
KE_INLINE double cospi(double x) {
  double r = x - 2.0 * rint(0.5 * x);
  return fabs(r) == 0.5 ? 0.0 : cos(M_PI * r);
}
KE_INLINE float sinpif(float x) { return (float)sinpi((double)x); }
KE_INLINE float cospif(float x) { return (float)cospi((double)x); }
KE_INLINE void sincosf(float x, float* s, float* c) {
  *s = sinf(x);
  *c = cosf(x);
}
KE_INLINE void sincos(double x, double* s, double* c) {
  *s = sin(x);
  *c = cos(x);
}
KE_INLINE void sincospif(float x, float* s, float* c) {
  *s = sinpif(x);
  *c = cospif(x);
}
KE_INLINE float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678f); }
KE_INLINE double normcdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }
KE_INLINE float fdividef(float a, float b) { return a / b; }
KE_INLINE float norm3df(float a, float b, float c) {
  return sqrtf(a * a + b * b + c * c);
}
KE_INLINE double norm3d(double a, double b, double c) {
  return sqrt(a * a + b * b + c * c);
}
KE_INLINE float norm4df(float a, float b, float c, float d) {
  return sqrtf(a * a + b * b + c * c + d * d);
}
KE_INLINE double norm4d(double a, double b, double c, double d) {
  return sqrt(a * a + b * b + c * c + d * d);
}
KE_INLINE float rnorm3df(float a, float b, float c) {
  return 1.0f / norm3df(a, b, c);
}
KE_INLINE double rnorm3d(double a, double b, double c) {
  return 1.0 / norm3d(a, b, c);
}
KE_INLINE float rnorm4df(float a, float b, float c, float d) {
  return 1.0f / norm4df(a, b, c, d);
}
KE_INLINE float rhypotf(float a, float b) { return 1.0f / hypotf(a, b); }
KE_INLINE double rhypot(double a, double b) { return 1.0 / hypot(a, b); }
KE_INLINE double normcdfinv(double p);
KE_INLINE double erfinv(double x) {
  return M_SQRT1_2 * normcdfinv(0.5 * (x + 1.0));
}
KE_INLINE double erfcinv(double x) { return -M_SQRT1_2 * normcdfinv(0.5 * x); }
// Acklam's rational approximation, then two steps of Halley's method.
KE_INLINE double normcdfinv(double p) {
  if (!(p > 0.0 && p < 1.0))
    return p == 0.0 ? -INFINITY : p == 1.0 ? INFINITY : NAN;
  double x;
  if (p < 0.02425 || p > 0.97575) {
    double q = sqrt(-2.0 * log(p < 0.5 ? p : 1.0 - p));
    x = (((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q -
            2.400758277161838) *
               q -
           2.549732539343734) *
              q +
          4.374664141464968) *
             q +
         2.938163982698783) /
        ((((7.784695709041462e-03 * q + 3.224671290700398e-01) * q +
           2.445134137142996) *
              q +
          3.754408661907416) *
             q +
         1.0);
    if (p > 0.5) x = -x;
  } else {
    double q = p - 0.5, r = q * q;
    x = (((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r -
            2.759285104469687e+02) *
               r +
           1.383577518672690e+02) *
              r -
          3.066479806614716e+01) *
             r +
         2.506628277459239) *
        q /
        (((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r -
            1.556989798598866e+02) *
               r +
           6.680131188771972e+01) *
              r -
          1.328068155288572e+01) *
             r +
         1.0);
  }
  for (int i = 0; i < 2; i++) {
    double e = 0.5 * erfc(-x * M_SQRT1_2) - p;
    double u = e * 2.50662827463100050242 * exp(0.5 * x * x);
    x -= u / (1.0 + 0.5 * x * u);
  }
  return x;
}
KE_INLINE float normcdfinvf(float p) { return (float)normcdfinv(p); }
KE_INLINE float erfinvf(float x) { return (float)erfinv(x); }
KE_INLINE float erfcinvf(float x) { return (float)erfcinv(x); }
KE_INLINE double erfcx(double x) { return exp(x * x) * erfc(x); }
KE_INLINE float erfcxf(float x) { return (float)erfcx(x); }
KE_INLINE float j0f(float x) { return (float)j0(x); }
KE_INLINE float j1f(float x) { return (float)j1(x); }
KE_INLINE float jnf(int n, float x) { return (float)jn(n, x); }
KE_INLINE float y0f(float x) { return (float)y0(x); }
KE_INLINE float y1f(float x) { return (float)y1(x); }
KE_INLINE float ynf(int n, float x) { return (float)yn(n, x); }
KE_INLINE double fdivide(double a, double b) { return a / b; }
KE_INLINE void sincospi(double x, double* s, double* c) {
  *s = sinpi(x);
  *c = cospi(x);
}
KE_INLINE float __saturatef(float x) {
  return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
}

KE_INLINE bool isnan(float x) { return __builtin_isnan(x); }
KE_INLINE bool isnan(double x) { return __builtin_isnan(x); }
KE_INLINE bool isinf(float x) { return __builtin_isinf(x); }
KE_INLINE bool isinf(double x) { return __builtin_isinf(x); }
KE_INLINE bool isfinite(float x) { return __builtin_isfinite(x); }
KE_INLINE bool isfinite(double x) { return __builtin_isfinite(x); }
KE_INLINE bool signbit(float x) { return __builtin_signbit(x); }
KE_INLINE bool signbit(double x) { return __builtin_signbit(x); }

// Fast and rounding-mode intrinsics.
KE_INLINE float __expf(float x) { return expf(x); }
KE_INLINE float __exp10f(float x) { return exp10f(x); }
KE_INLINE float __logf(float x) { return logf(x); }
KE_INLINE float __log2f(float x) { return log2f(x); }
KE_INLINE float __log10f(float x) { return log10f(x); }
KE_INLINE float __sinf(float x) { return sinf(x); }
KE_INLINE float __cosf(float x) { return cosf(x); }
KE_INLINE float __tanf(float x) { return tanf(x); }
KE_INLINE float __tanhf(float x) { return tanhf(x); }
KE_INLINE float __powf(float x, float y) { return powf(x, y); }
KE_INLINE float __fdividef(float a, float b) { return a / b; }
KE_INLINE void __sincosf(float x, float* s, float* c) { sincosf(x, s, c); }
// min, max and abs take each arithmetic type, mixed integers included.
#define KE_MINMAX(T)                                  \
  KE_INLINE T min(T a, T b) { return b < a ? b : a; } \
  KE_INLINE T max(T a, T b) { return a < b ? b : a; }
// clang-format off
KE_MINMAX(int) KE_MINMAX(unsigned) KE_MINMAX(long) KE_MINMAX(unsigned long)
KE_MINMAX(long long) KE_MINMAX(unsigned long long);
// clang-format on
#undef KE_MINMAX
KE_INLINE unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
KE_INLINE unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
KE_INLINE unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
KE_INLINE unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
KE_INLINE float min(float a, float b) { return fminf(a, b); }
KE_INLINE float max(float a, float b) { return fmaxf(a, b); }
KE_INLINE double min(double a, double b) { return fmin((double)a, (double)b); }
KE_INLINE double max(double a, double b) { return fmax((double)a, (double)b); }
KE_INLINE double min(float a, double b) { return fmin((double)a, (double)b); }
KE_INLINE double min(double a, float b) { return fmin((double)a, (double)b); }
KE_INLINE double max(float a, double b) { return fmax((double)a, (double)b); }
KE_INLINE double max(double a, float b) { return fmax((double)a, (double)b); }
KE_INLINE int abs(int x) { return x < 0 ? -x : x; }
KE_INLINE long abs(long x) { return x < 0 ? -x : x; }
KE_INLINE long long abs(long long x) { return x < 0 ? -x : x; }
KE_INLINE float abs(float x) { return __builtin_fabsf(x); }
KE_INLINE double abs(double x) { return __builtin_fabs(x); }
KE_INLINE long labs(long x) { return abs(x); }
KE_INLINE long long llabs(long long x) { return abs(x); }

// Any other arithmetic arguments mean the double function, as in C++: whole
// numbers, and a float beside something else.
namespace ke_device {
template <class T>
using of_integer = typename enable_if<std::is_integral<T>::value>::type;
template <class A, class B>
constexpr bool same_float =
    std::is_floating_point<A>::value && same<A, B>::value;
template <class A, class B>
using of_two =
    typename enable_if<std::is_arithmetic<A>::value &&
                       std::is_arithmetic<B>::value && !same_float<A, B>>::type;
template <class A, class B, class C>
using of_three =
    typename enable_if<std::is_arithmetic<A>::value &&
                       std::is_arithmetic<B>::value &&
                       std::is_arithmetic<C>::value &&
                       !(same_float<A, B> && same_float<A, C>)>::type;
}  // namespace ke_device
#define KE_OF_INTEGER(R, f)                            \
  template <class T, class = ke_device::of_integer<T>> \
  KE_INLINE R f(T x) {                                 \
    return f((double)x);                               \
  }
#define KE_OF_TWO(f)                                           \
  template <class A, class B, class = ke_device::of_two<A, B>> \
  KE_INLINE double f(A a, B b) {                               \
    return f((double)a, (double)b);                            \
  }
#define KE_OF_DOUBLE(f) KE_OF_INTEGER(double, f)
// clang-format off
KE_OF_DOUBLE(sin) KE_OF_DOUBLE(cos) KE_OF_DOUBLE(tan) KE_OF_DOUBLE(asin)
KE_OF_DOUBLE(acos) KE_OF_DOUBLE(atan) KE_OF_DOUBLE(sinh) KE_OF_DOUBLE(cosh)
KE_OF_DOUBLE(tanh) KE_OF_DOUBLE(asinh) KE_OF_DOUBLE(acosh) KE_OF_DOUBLE(atanh)
KE_OF_DOUBLE(exp) KE_OF_DOUBLE(exp2) KE_OF_DOUBLE(expm1) KE_OF_DOUBLE(log)
KE_OF_DOUBLE(log2) KE_OF_DOUBLE(log10) KE_OF_DOUBLE(log1p) KE_OF_DOUBLE(sqrt)
KE_OF_DOUBLE(cbrt) KE_OF_DOUBLE(floor) KE_OF_DOUBLE(ceil) KE_OF_DOUBLE(round)
KE_OF_DOUBLE(trunc) KE_OF_DOUBLE(rint) KE_OF_DOUBLE(nearbyint) KE_OF_DOUBLE(erf)
KE_OF_DOUBLE(erfc) KE_OF_DOUBLE(lgamma) KE_OF_DOUBLE(tgamma) KE_OF_DOUBLE(fabs)
KE_OF_DOUBLE(logb)
KE_OF_INTEGER(long, lround) KE_OF_INTEGER(long, lrint)
KE_OF_INTEGER(long long, llround) KE_OF_INTEGER(long long, llrint)
KE_OF_INTEGER(int, ilogb) KE_OF_INTEGER(bool, isnan) KE_OF_INTEGER(bool, isinf)
KE_OF_INTEGER(bool, isfinite) KE_OF_INTEGER(bool, signbit)
KE_OF_TWO(pow) KE_OF_TWO(fmod) KE_OF_TWO(atan2) KE_OF_TWO(hypot)
KE_OF_TWO(fmax) KE_OF_TWO(fmin) KE_OF_TWO(fdim) KE_OF_TWO(copysign)
KE_OF_TWO(remainder) KE_OF_TWO(nextafter);
// clang-format on
#undef KE_OF_DOUBLE
#undef KE_OF_TWO
#undef KE_OF_INTEGER
template <class A, class B, class C, class = ke_device::of_three<A, B, C>>
KE_INLINE double fma(A a, B b, C c) {
  return fma((double)a, (double)b, (double)c);
}
template <class T, class = ke_device::of_integer<T>>
KE_INLINE double ldexp(T x, int e) {
  return ldexp((double)x, e);
}
template <class T, class = ke_device::of_integer<T>>
KE_INLINE double scalbn(T x, int e) {
  return scalbn((double)x, e);
}
// CUDA's own: the float stays a float.
KE_INLINE float pow(float x, int y) { return powf(x, (float)y); }

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
using ::uint32_t; using ::uint64_t; using ::intptr_t; using ::uintptr_t;
using ::asinh; using ::acosh; using ::atanh; using ::cbrt; using ::erfc;
using ::lgamma; using ::tgamma; using ::nearbyint; using ::copysign; using ::fdim;
using ::remainder; using ::nextafter; using ::ldexp; using ::frexp; using ::modf;
using ::lround; using ::lrint; using ::llround; using ::llrint; using ::ilogb;
using ::logb; using ::scalbn; using ::signbit; using ::expf; using ::logf;
using ::sqrtf; using ::powf; using ::fabsf; using ::fmaxf; using ::fminf;
using ::sinf; using ::cosf; using ::tanhf; using ::floorf; using ::ceilf;
using ::memcpy; using ::memmove; using ::memset; using ::printf;
// clang-format on
}  // namespace std
