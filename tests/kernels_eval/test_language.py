"""CUDA C++ as people and models write it."""

import numpy as np
import pytest

X = {"x": np.arange(32, dtype=np.float32)}

# name: (text, expected output as a function of the lane)
ACCEPTED = {
  "headers": (
    """#include <cuda_runtime.h>
    #include "cuda_fp16.h"
    #  include <math.h>  // for expf
    # /* spaces */ include <cstdint>
    __global__ void k(const float* x, float* out) {
      uint32_t t = threadIdx.x; out[t] = expf(0.0f) + x[t]; }""",
    lambda t: t + 1,
  ),
  "constant_table": (
    """__constant__ float table[4] = {1.0f, 2.0f, 3.0f, 4.0f};
    __constant__ int one;
    __global__ void k(const float* x, float* out) {
      out[threadIdx.x] = table[threadIdx.x % 4] + one; }""",
    lambda t: t % 4 + 1,
  ),
  "global_variables": (
    """__device__ float buffer[32];
    __device__ int counter = 5;
    __global__ void k(const float* x, float* out) {
      buffer[threadIdx.x] = x[threadIdx.x]; atomicAdd(&counter, 1);
      __syncthreads();
      out[threadIdx.x] = buffer[31 - threadIdx.x] + counter; }""",
    lambda t: 31 - t + 37,
  ),
  "template_kernel": (
    """// launch: k<float, 32> grid=(1) block=(32)
    template <typename T, int N>
    __global__ void k(const T* __restrict__ x, T* __restrict__ out) {
      T sum = 0;
      #pragma unroll 4
      for (int i = 0; i < N; i++) sum += x[i];
      out[threadIdx.x] = sum; }""",
    lambda t: 0 * t + 496,
  ),
  "two_instances": (
    """// launch: k< 1 > grid=(1) block=(16)
    // launch: k<2> grid=(1) block=(16)
    template <int N> __global__ void k(const float* x, float* out) {
      if (N == 1) out[threadIdx.x] = x[threadIdx.x];
      else out[16 + threadIdx.x] = -x[threadIdx.x]; }""",
    lambda t: np.where(t < 16, t, -(t - 16)),
  ),
  "lambdas": (
    """template <class F>
    __device__ float twice(F f, float v) { return f(f(v)); }
    __global__ void k(const float* x, float* out) {
      float bias = 1.0f;
      auto add = [=](float v) { return v + bias; };
      auto store = [&](float v) { out[threadIdx.x] = v; };
      store(twice(add, x[threadIdx.x])); }""",
    lambda t: t + 2,
  ),
  "recursion": (
    """__device__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    __global__ void k(const float* x, float* out) {
      out[threadIdx.x] = fib(threadIdx.x % 8); }""",
    lambda t: np.array([0, 1, 1, 2, 3, 5, 8, 13])[t % 8],
  ),
  "recursion_with_objects": (
    """struct P { float a, b; };
    __device__ P odd(P p, int n);
    __device__ P even(P p, int n) {
      return n ? odd(P{p.a + 1, p.b}, n - 1) : p; }
    __device__ P odd(P p, int n) {
      return n ? even(P{p.a, p.b + 1}, n - 1) : p; }
    __global__ void k(const float* x, float* out) {
      P p = even(P{0, 0}, threadIdx.x);
      out[threadIdx.x] = p.a * 100 + p.b; }""",
    lambda t: (t + 1) // 2 * 100 + t // 2,
  ),
  "macros": (
    """#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
    #define FOR_EACH(i, n) \\
      for (int i = threadIdx.x; \\
           i < (n); /* a comment */ \\
           i += blockDim.x)
    #define min(a, b) ((a) < (b) ? (a) : (b))
    #ifndef WARP
    #define WARP 32
    #endif
    #if __CUDA_ARCH__ >= 700 && defined(__CUDACC__)
    __global__ void k(const float* x, float* out) {
      FOR_EACH(i, 32) out[i] = min(x[i], 7.0f) + CEIL_DIV(33, WARP); }
    #else
    this is not code
    #endif""",
    lambda t: np.minimum(t, 7) + 2,
  ),
  "macros_for_device": (
    """#define DEVICE_INLINE __device__ __forceinline__
    #define TABLE(name) __constant__ float name[2]
    #define CONST __constant__
    #define OP(name, op) \\
      DEVICE_INLINE float4 name(float4 a, float b) { a.x = a.x op b; return a; }
    OP(plus, +)
    TABLE(first) = {1, 2};
    CONST float second[2] = {3, 4};
    DEVICE_INLINE float helper(float v) { return v + first[1] + second[0]; }
    __global__ void k(const float* x, float* out) {
      float4 v = plus(make_float4(x[threadIdx.x], 0, 0, 0), 1.0f);
      out[threadIdx.x] = helper(v.x); }""",
    lambda t: t + 6,
  ),
  "host_code_that_is_not_used": (
    """#include <math.h>
    float reference(const float* x, int n) { return sqrtf(x[n]); }
    const float weights[2] = {1, 2};
    struct Host { float get() { return 1; } };
    struct Both { __host__ __device__ float get() { return 2; } };
    __device__ float reference(float v) { return v + 1; }
    __global__ void k(const float* x, float* out) {
      float weights = 3;
      Both both;
      out[threadIdx.x] = reference(x[threadIdx.x]) + weights + both.get(); }""",
    lambda t: t + 6,
  ),
  "constants_of_the_host": (
    """const int kSize = 4;
    constexpr float kScale = 2.0f, kShift = 1.0f;
    static const unsigned kMask = 0xffffffffu;
    enum { kTwo = 2 };
    constexpr int halved(int n) { return n / 2; }
    __global__ void k(const float* x, float* out) {
      float a[kSize] = {};
      a[halved(kSize)] = kScale * x[threadIdx.x] + kShift;
      out[threadIdx.x] = a[kTwo] + (kMask == ~0u); }""",
    lambda t: 2 * t + 2,
  ),
  "words_in_comments_and_strings": (
    """// asm volatile("x"); __shared__ int s = 1; k<<<1, 1>>>(); main() {
    /* #include </etc/passwd>
       cudaMalloc( wmma */
    __global__ void k(const float* x, float* out) {
      const char* s = "__shared__ float s[4]; asm( <<<1>>> // \\" {{{";
      const char c = '"', d = '{';  // '
      out[threadIdx.x] = s[0] == '_' && c == 34 && d == 123; }""",
    lambda t: 0 * t + 1,
  ),
  "line_ends_and_tabs": (
    "__global__ void k(const float* x,\r\n\t\tfloat* out)\r\n{\r\n"
    "\tint t = \\\r\n\tthreadIdx.x;\r\n\tout[t] = x[t];\r\n}\r\n",
    lambda t: t,
  ),
  "other_alphabets": (
    """// größer, 核, ядро
    __global__ void k(const float* x, float* out) {
      const char* s = "→"; float größe = 2.0f;
      __shared__ float σ[32];
      σ[threadIdx.x] = größe * x[threadIdx.x];
      out[threadIdx.x] = σ[threadIdx.x] + (s[0] != 0); }""",
    lambda t: 2 * t + 1,
  ),
  "c_linkage": (
    """extern "C" {
    __device__ float f(float v) { return v + 1; }
    __global__ void __launch_bounds__(32) k(const float* x, float* out) {
      __shared__ float s[32];
      s[threadIdx.x] = f(x[threadIdx.x]);
      out[threadIdx.x] = s[threadIdx.x]; }
    }""",
    lambda t: t + 1,
  ),
  "signature_over_lines": (
    """extern "C"
    __global__ void
    __launch_bounds__(32, 1)
    k(
      const float* __restrict__ x,  // input
      float* __restrict__ out
    )
    { out[threadIdx.x] = x[threadIdx.x]; }""",
    lambda t: t,
  ),
  "second_kernel_first": (
    """// launch: b grid=(1) block=(32)
    // launch: a grid=(1) block=(32)
    __global__ void a(const float* x, float* out) { out[threadIdx.x] *= 2; }
    __global__ void b(const float* x, float* out) {
      out[threadIdx.x] = x[threadIdx.x] + 1; }""",
    lambda t: 2 * (t + 1),
  ),
  "declared_before": (
    """__device__ float helper(float v);
    __global__ void k(const float* x, float* out);
    __global__ void k(const float* x, float* out) {
      out[threadIdx.x] = helper(x[threadIdx.x]); }
    __device__ float helper(float v) { return 3 * v; }""",
    lambda t: 3 * t,
  ),
  "classes": (
    """template <typename T> struct Sum {
      T value = 0;
      __device__ __forceinline__ void add(T v) { value += v; }
      __device__ operator T() const { return value; }
    };
    struct Op { __device__ float operator()(float a, float b) const {
      return a * b; } };
    namespace detail { __device__ inline int twice(int v) { return 2 * v; } }
    enum class Mode : int { kAdd = 1 };
    __global__ void k(const float* x, float* out) {
      Sum<float> s;
      for (int i = 0; i < 3; ++i) s.add(x[threadIdx.x]);
      out[threadIdx.x] = Op()(s, 2.0f) + detail::twice((int)Mode::kAdd); }""",
    lambda t: 6 * t + 2,
  ),
  "modern": (
    """using F = float;
    constexpr int kSize = 4;
    template <int N> constexpr int doubled = 2 * N;
    __global__ void k(const float* x, float* out) {
      static_assert(doubled<kSize> == 8, "");
      F a[kSize] = {1, 2, 3, 4};
      F sum = 0;
      for (auto v : a) sum += v;
      if constexpr (sizeof(F) == 4) sum += 1;
      auto [p, q] = make_float2(1.0f, 2.0f);
      [[maybe_unused]] const int big = 1'000'000, bits = 0b101;
      out[threadIdx.x] = sum + p + q + (bits == 5); }""",
    lambda t: 0 * t + 15,
  ),
  "type_traits": (
    """#include <type_traits>
    template <class T> __device__ int kind(T) {
      if constexpr (std::is_same_v<T, float>) return 1;
      else if constexpr (std::is_integral<T>::value) return 2;
      else return std::is_floating_point_v<T> ? 3 : 4;
    }
    template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
    __device__ T same(T v) { return v; }
    __global__ void k(const float* x, float* out) {
      typedef std::conditional_t<sizeof(long) == 8, double, float> Wide;
      std::remove_reference_t<float&> v = kind(1.0f) * 1000 + kind('c') * 100;
      const float* none = NULL;
      out[threadIdx.x] = same(v) + kind(Wide(0)) * 10 + kind(&v) + !none; }""",
    lambda t: 0 * t + 1000 + 200 + 30 + 4 + 1,
  ),
  "gnu_attributes": (
    """__device__ __attribute__((always_inline)) float f(float v) { return v; }
    struct __attribute__((aligned(16))) Quad { float v[4]; };
    __global__ void k(const float* x, float* out) {
      __attribute__((unused)) int nothing = 0;
      Quad q; q.v[0] = f(x[threadIdx.x]);
      out[threadIdx.x] = q.v[0] + alignof(Quad); }""",
    lambda t: t + 16,
  ),
  "unions_of_vectors": (
    """union Pack { float4 v; float f[4]; __half2 h[8]; };
    __global__ void k(const float* x, float* out) {
      Pack p, q;
      p.v = ((const float4*)x)[threadIdx.x / 4];
      q = p;
      out[threadIdx.x] = q.f[threadIdx.x % 4]; }""",
    lambda t: t,
  ),
  "static_in_function": (
    """__device__ int next() { static int n = 3; return n; }
    __global__ void k(const float* x, float* out) {
      out[threadIdx.x] = next(); }""",
    lambda t: 0 * t + 3,
  ),
  "memory_functions": (
    """__global__ void k(const float* x, float* out) {
      float a[4], b[4];
      memcpy(a, x + threadIdx.x / 4 * 4, sizeof a);
      memmove(b, a, sizeof b);
      memset(a, 0, sizeof a);
      std::memcpy(&out[threadIdx.x], &b[threadIdx.x % 4], 4);
      out[threadIdx.x] += a[0]; }""",
    lambda t: t,
  ),
  "shared_of_file": (
    """__shared__ float s[32];
    __device__ void put(int i, float v) { s[i] = v; }
    __global__ void k(const float* x, float* out) {
      put(31 - threadIdx.x, x[threadIdx.x]);
      __syncthreads();
      out[threadIdx.x] = s[threadIdx.x]; }""",
    lambda t: 31 - t,
  ),
  "switch_and_goto": (
    """__global__ void k(const float* x, float* out) {
      int t = threadIdx.x, r = 0;
      switch (t % 3) { case 0: r = 1; break; case 1: r = 2; default: r += 5; }
      if (t > 30) goto end;
      r += 100;
      end: out[t] = r; }""",
    lambda t: (
      np.select([t % 3 == 0, t % 3 == 1], [1, 7], 5) + np.where(t > 30, 0, 100)
    ),
  ),
  "function_pointers": (
    """__device__ float one(float v) { return v + 1; }
    __device__ float two(float v) { return v + 2; }
    __global__ void k(const float* x, float* out) {
      float (*f)(float) = threadIdx.x % 2 ? one : two;
      out[threadIdx.x] = f(x[threadIdx.x]); }""",
    lambda t: t + np.where(t % 2, 1, 2),
  ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(lab, name):
  text, expected = ACCEPTED[name]
  got = lab.out(text, inputs=X)
  np.testing.assert_array_equal(got, expected(np.arange(32)))


def test_parameters_that_fit(lab):
  text = """__global__ void k(const float* __restrict__ const a, float b[],
    const float c, unsigned int d) { b[threadIdx.x] = a[threadIdx.x] + c + d; }
  """
  got = lab.out(text, inputs=X, scalars={"s": 1.5}, dims={"n": -3})
  np.testing.assert_array_equal(got, X["x"] + 1.5 + 2.0**32)


def test_print(lab):
  text = r"""__global__ void k(const float* x, float* out) {
    if (threadIdx.x == 3) printf("x[%d] = %.1f %s\n", threadIdx.x, x[3], "ok");
    out[threadIdx.x] = 1.0f;
    if (threadIdx.x == 5) printf("\x1b[31mé %%\n");
  }"""
  lab.out(text, inputs=X)
  assert lab.result.log == "x[3] = 3.0 ok\n\N{REPLACEMENT CHARACTER}[31mé %\n"


def test_a_flood_of_prints_is_cut(lab):
  text = """__global__ void k(const float* x, float* out) {
    for (int i = 0; i < 20000; i++) printf("line %d of many\\n", i);
    out[threadIdx.x] = 1.0f; }"""
  lab.out(text, inputs=X)
  assert 1000 < len(lab.result.log) <= 16 * 1024


_F, _D = np.finfo(np.float32), np.finfo(np.float64)
# expression of std::numeric_limits<T> -> value
LIMITS = {
  "<float>::max()": _F.max, "<float>::lowest()": _F.min,
  "<float>::min()": _F.tiny, "<float>::epsilon()": _F.eps,
  "<float>::infinity()": np.inf, "<float>::denorm_min()": _F.smallest_subnormal,
  "<double>::max()": _D.max, "<double>::lowest()": _D.min,
  "<double>::epsilon()": _D.eps, "<const double>::infinity()": np.inf,
  "<float>::digits": 24, "<float>::has_infinity": 1, "<int>::is_integer": 1,
  "<unsigned>::is_signed": 0, "<int>::digits": 31, "<bool>::max()": 1,
} | {
  f"<{name}>::{limit}()": getattr(np.iinfo(dtype), limit)
  for name, dtype in {
    "int": np.int32, "unsigned int": np.uint32, "int64_t": np.int64,
    "unsigned long long": np.uint64, "long": np.int64, "short": np.int16,
    "unsigned short": np.uint16, "int8_t": np.int8, "unsigned char": np.uint8,
  }.items()
  for limit in ("min", "max")
}  # fmt: skip


def test_limits_of_numbers(lab):
  stores = "".join(
    f"out[{i}] = (double)std::numeric_limits{e};\n"
    for i, e in enumerate(LIMITS)
  )
  text = f"""#include <limits>
  #include <cfloat>
  template <class T> __device__ T lowest() {{
    return std::numeric_limits<T>::lowest(); }}
  constexpr float least = std::numeric_limits<float>::lowest();
  static_assert(least == -FLT_MAX, "");
  __global__ void k(double* out) {{
    {stores}
    out[{len(LIMITS)}] = lowest<int>() + isnan(
        std::numeric_limits<float>::quiet_NaN());
  }}"""
  got = lab.out(
    text, "float64", size=len(LIMITS) + 1, launch="grid=(1) block=(1)"
  )
  want = [float(v) for v in LIMITS.values()] + [-(2.0**31) + 1]
  np.testing.assert_array_equal(got, want)
