"""CUDA C++ as people and models write it: what compiles, and what does not."""

import numpy as np
import pytest

from kernels_eval.schema import Status

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
    """template <class F> __device__ float twice(F f, float v) { return f(f(v)); }
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
    __device__ P even(P p, int n) { return n ? odd(P{p.a + 1, p.b}, n - 1) : p; }
    __device__ P odd(P p, int n) { return n ? even(P{p.a, p.b + 1}, n - 1) : p; }
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


# name: (status, line, words, text)
_K = "__global__ void k(const float* x, float* out) { "
C, V = Status.COMPILE_ERROR, Status.CONTRACT_VIOLATION
REFUSED = {
  "asm": (C, 2, "not supported on the CPU executor: inline assembly",
          _K + '\n asm volatile("trap;"); }'),
  "asm_in_macro": (C, 1, "inline assembly", '#define T asm("trap;")\n' + _K + "T; }"),
  "asm_behind_a_false_comment": (C, 3, "inline assembly",
    '// \\\n/*\n__device__ void f() { asm("trap;"); }\n// */\n' + _K + "}"),
  "asm_from_pieces": (C, 2, "poisoned",
    "#define T a##sm\n" + _K + '\n T("trap;"); }'.replace("\n", " ")),
  "wmma": (C, 1, "tensor-core operations",
    "#include <mma.h>\n" + _K + "}"),
  "cooperative_groups": (C, 1, "cooperative groups",
    "#include <cooperative_groups.h>\n" + _K + "}"),
  "cooperative_groups_name": (C, 1, "cooperative groups",
    "namespace cg = cooperative_groups;\n" + _K + "}"),
  "cub": (C, 1, "CUB", "#include <cub/cub.cuh>\n" + _K + "}"),
  "thrust": (C, 1, "Thrust", "#include <thrust/device_vector.h>\n" + _K + "}"),
  "textures": (C, 1, "textures", "__device__ cudaTextureObject_t t;\n" + _K + "}"),
  "libcu++": (C, 1, "libcu++", "#include <cuda/std/atomic>\n" + _K + "}"),
  "password_file": (C, 1, "no header", '#include "/etc/passwd"\n' + _K + "}"),
  "endless_file": (C, 1, "no header", '#include "/dev/zero"\n' + _K + "}"),
  "itself": (C, 1, "no header", '#include "kernel.cu"\n' + _K + "}"),
  "unit": (C, 1, "no header", '#include "unit.cpp"\n' + _K + "}"),
  "through_a_macro": (C, 2, "no header",
    '#define F "/etc/passwd"\n#include F\n' + _K + "}"),
  "with_a_comment_inside": (C, 1, "no header",
    '#/**/include/**/"/etc/passwd"\n' + _K + "}"),
  "with_a_continued_line": (C, 1, "no header",
    '#inc\\\nlude "/etc/passwd"\n' + _K + "}"),
  "include_next": (C, 1, "no header", "#include_next <stdio.h>\n" + _K + "}"),
  "digraph": (C, 1, "digraphs", '%:include "/etc/passwd"\n' + _K + "}"),
  "unknown_header": (C, 1, "no header <vector>", "#include <vector>\n" + _K + "}"),
  "raw_string": (C, 1, "raw string", 'const char* s = R"(x)";\n' + _K + "}"),
  "launch": (V, 3, "`<<<...>>>` launches a kernel",
    _K + "}\nvoid run(float* p) {\n k<<<1, 1>>>(p, p); }"),
  "cuda_malloc": (V, 2, "`cudaMalloc` is not device code",
    _K + "}\nvoid run(float* p) { cudaMalloc(&p, 4); }"),
  "main": (V, 2, "`main` is not device code", _K + "}\nint main() { return 0; }"),
  "syntax": (C, 4, "expected ',' or ';'", _K + "\n int i = 0;\n int j = 1\n}"),
  "undeclared": (C, 2, "'undeclared' was not declared", _K + "\n undeclared(); }"),
  "inside_a_template": (C, 2, "no member named 'nothing'",
    "template <class T> __device__ float f(T v) {\n return v.nothing; }\n"
    "struct S {};\n" + _K + "\n out[0] = f(S{}); }"),
  "beside_a_shared_declaration": (C, 2, "was not declared",
    _K + "\n __shared__ float s[4]; __shared__ int n; s[0] = missing; }"),
  "type_of_a_shared_variable": (C, 2, "'Missing'", _K + "\n __shared__ Missing s; }"),
  "two_types_of_dynamic_memory": (C, 2, "conflicting declaration",
    "__global__ void a(float* out) { extern __shared__ float s[]; s[0] = 1; }\n"
    + _K + "extern __shared__ int s[]; s[0] = 1; }\n// launch: k grid=(1) block=(1)"),
  "variable_length_array": (C, 2, "variable length array",
    _K + "\n int n = out[0]; float a[n]; a[0] = 1; }"),
  "helper_without_device": (C, 3, "`helper` is host code",
    "float helper(float v) { return v; }\n" + _K + "\n out[0] = helper(1); }"),
  "template_without_device": (C, 2, "`helper` is host code",
    "template <class T> T helper(T v) { return v; }\n" + _K + "out[0] = helper(1); }"),
  "method_without_device": (C, 2, "`get` is host code",
    "struct S { float get() { return 1; } };\n" + _K + "S s; out[0] = s.get(); }"),
  "table_of_the_host": (C, 2, "`weights` is host code",
    "const float weights[3] = {1, 2, 3};\n" + _K + "out[0] = weights[threadIdx.x]; }"),
  "variable_of_the_host": (C, 2, "`count` is host code",
    "int count = 3;\n" + _K + "out[0] = count; }"),
  "call_of_a_kernel": (C, 2, "`a` is a __global__ function",
    "__global__ void a(float* p) { p[0] = 1; }\n// launch: k grid=(1) block=(1)\n"
    .replace("\n//", " //") + _K + "a(out); }"),
  "kernel_with_a_result": (C, None, "must return void",
    "__global__ int k(const float* x, float* out) { return 1; }"),
  "dynamic_initialization": (C, None, "dynamic initialisation",
    "__device__ float f(float v) { return v; }\n__device__ float g = f(2.0f);\n"
    + _K + "out[0] = g; }"),
  "throw": (C, 2, "exception", _K + "\n throw 1; }"),
  "heap": (C, 2, "memory allocation in a kernel", _K + "\n int* p = new int[4]; p[0] = 1; }"),
  "c_library": (C, 2, "`puts` is not defined",
    'extern "C" int puts(const char*);\n' + _K + 'puts("hi"); }'),
  "assigned_index": (C, 1, "read-only", _K + "threadIdx.x = 3; }"),
  "builtin": (C, 1, "compiler's own function",
    _K + "__builtin_return_address(0); }"),
  "atomic_builtin": (C, 1, "compiler's own function",
    _K + "__atomic_fetch_add((int*)out, 1, 0); }"),
  "executor_name": (V, 1, "the executor's own", _K + "ke_sync_block(1, 2); }"),
  "executor_macro": (V, 1, "the executor's own", "KE_ENTRY void f() {}\n" + _K + "}"),
  "keyword_as_macro": (V, 1, "changes the language",
    "#define static_assert(...)\n" + _K + "}"),
  "unclosed_comment": (C, 1, "unterminated comment", _K + "} /* "),
  "unclosed_condition": (C, 1, "unterminated #if", "#if 1\n" + _K + "}"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(lab, name):
  status, line, words, text = REFUSED[name]
  stop = lab.stop(text, inputs=X)
  assert stop.status == status, stop
  assert words in stop.message, stop.message
  if hasattr(stop, "diagnostics"):
    got = stop.diagnostics[0].line if stop.diagnostics else None
  else:
    got = stop.line
  assert got == line, stop.message


@pytest.mark.parametrize(
  ("arguments", "words"),
  [
    ("const float* x", "must take 4 parameters"),
    ("const float* x, float* out, float s, int n, int m", "must take 4"),
    ("const double* x, float* out, float s, int n", "parameter 1 must be `float* x`"),
    ("const float* x, __half* out, float s, int n", "parameter 2 must be `float* out`"),
    ("const float* x, float* out, double s, int n", "parameter 3 must be `float s`"),
    ("const float* x, float* out, float s, long n", "parameter 4 must be `int n`"),
    ("const float* x, float* out, float s, size_t n", "parameter 4 must be `int n`"),
    ("float x, float* out, float s, int n", "parameter 1 must be `float* x`"),
    ("const float4* x, float* out, float s, int n", "parameter 1 must be"),
    ("const float** x, float* out, float s, int n", "parameter 1 must be"),
  ],
)  # fmt: skip
def test_parameters_that_do_not_fit(lab, arguments, words):
  stop = lab.stop(
    f"__global__ void k({arguments}) {{}}",
    inputs=X, scalars={"s": 1.5}, dims={"n": 3},
  )  # fmt: skip
  assert stop.status == V
  assert words in stop.message
  assert "(float* x, float* out, float s, int n)" in stop.message


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
