"""Objects that are copied whole: to and from lambdas, and their padding."""

import numpy as np
import pytest

from kernels_eval.schema import Status

X = {"x": np.arange(64, dtype=np.float32)}
_OBJECT = """
struct V { float a, b; };
__global__ void k(const float* x, float* out) {
  int t = threadIdx.x;
"""
# name: (words of the message, body)
LAMBDAS = {
  "argument": (
    "reads x[64]",
    "auto f = [](V v) { return v.a + v.b; };\n"
    "  out[t] = f(((const V*)x)[32 + t]);",
  ),
  "argument_with_capture": (
    "reads x[64]",
    "auto f = [&, t](V v) mutable { return v.a + t; };\n"
    "  out[t] = f(((const V*)x)[32 + t]);",
  ),
  "result": (
    "writes out[64]",
    "auto make = [=](float v) -> V { return V{v, v}; };\n"
    "  ((V*)out)[32 + t] = make(x[t]);",
  ),
  "generic": (
    "reads x[64]",
    "auto f = [](auto v, int n) { return v.a + n; };\n"
    "  out[t] = f(((const V*)x)[32 + t], 1);",
  ),
  "called_at_once": (
    "reads x[64]",
    "int unused = 0; (void)unused;\n"
    "  out[t] = [](V v) { return v.b; }(((const V*)x)[32 + t]);",
  ),
  "within_another": (
    "reads x[64]",
    "auto f = [&](const V* p) { return [](V v) { return v.b; }(p[32 + t]); };\n"
    "  out[t] = f((const V*)x);",
  ),
  "shared_without_a_barrier": (
    "reads shared s[",
    "__shared__ V s[64]; s[t] = V{x[t], 1.0f}; auto f = [](V v) "
    "{ return v.a; };\n  out[t] = f(s[t ^ 1]);",
  ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAMBDAS)
def test_objects_that_go_to_and_come_from_lambdas(lab, name):
  words, body = LAMBDAS[name]
  stop = lab.stop(
    f"{_OBJECT}  {body}\n}}", inputs=X, launch="grid=(1) block=(32)"
  )
  assert words in stop.message
  assert stop.status == Status.RUNTIME_ERROR


def test_lambdas_of_every_kind_run(lab):
  text = """struct V { float a, b; };
  template <class F> __device__ float apply(F f, V v) { return f(v); }
  __device__ int table[2] = {5, 6};
  __global__ void k(const float* x, float* out) {
    int t = threadIdx.x;
    auto none = [] { return 1.0f; };
    auto sum = [](V v) { return v.a + v.b; };
    auto faculty = [](auto self, V n) -> float {
      return n.a < 2.0f ? 1.0f : n.a * self(self, V{n.a - 1.0f, 0.0f}); };
    float (*pointer)(V) = [](V v) { return v.a; };
    float list[2] = {0}; int i[1] = {1};
    out[t] = none() + apply(sum, V{1, 2}) + faculty(faculty, V{3, 0})
        + pointer(V{10, 0}) + table[(1)] + list[i[0]] + (sum)(V{100, 0});
  }"""
  got = lab.out(text, size=1, inputs=X, launch="grid=(1) block=(1)")
  np.testing.assert_array_equal(got, [1 + 3 + 6 + 10 + 6 + 100])


# ---- padding

# type: stores of all of its members
PADDED = {
  "struct P { float v; bool ok; }": "p->v = t; p->ok = true;",
  "struct P { bool ok; float v; }": "p->ok = true; p->v = t;",
  "struct P { bool ok; short s; float v; }":
    "p->ok = true; p->s = 1; p->v = t;",
  "struct P { double v; int i; }": "p->v = t; p->i = 1;",
  "struct P { char c; double v; }": "p->c = 1; p->v = t;",
  "struct P { float4 f; float v; }":
    "p->f.x = 1; p->f.y = 2; p->f.z = 3; p->f.w = 4; p->v = t;",
  "struct P { short v; char c; }": "p->v = t; p->c = 1;",
  "struct Q { double d; char c; }; struct P { float v; Q q; char c; }":
    "p->v = t; p->q.d = 1; p->q.c = 2; p->c = 3;",
}  # fmt: skip


@pytest.mark.parametrize("place", ["shared", "dynamic", "scratch"])
@pytest.mark.parametrize("kind", PADDED)
def test_padding_may_be_copied(lab, kind, place):
  array = {
    "shared": "__shared__ P s[64];",
    "dynamic": "extern __shared__ char raw[]; P* s = (P*)raw;",
    "scratch": "P* s = (P*)tmp;",
  }[place]
  text = f"""
  // scratch: tmp float64 (1024)
  // launch: k grid=(1) block=(64) smem=64*48 args=(tmp, out)
  {kind};
  __device__ float value(P p) {{ return p.v; }}
  __global__ void k(double* tmp, float* out) {{
    {array}
    int t = threadIdx.x;
    P* p = &s[t];
    {PADDED[kind]}
    __syncthreads();
    P q = s[t ^ 1];
    out[t] = q.v + value(s[t ^ 2]);
  }}"""
  got = lab.out(text, size=64)
  t = np.arange(64)
  np.testing.assert_array_equal(got, (t ^ 1) + (t ^ 2))


# type and what is stored of it; the copy must not pass
UNWRITTEN = {
  "nothing": ("struct P { float v; bool ok; }", ""),
  "a word of two": ("struct P { float v; int i; }", "p->v = t;"),
  "half of a vector": ("typedef float4 P", "p->x = t; p->y = t;"),
  "half of a pair": ("typedef float2 P", "p->x = t;"),
  "all but a bool": ("struct P { float v; bool ok; }", "p->v = t;"),
  "all but a long tail": (
    "struct P { float v; float more[7]; }", "p->v = t;"
  ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNWRITTEN)
def test_what_is_no_padding_is_still_found(lab, name):
  kind, store = UNWRITTEN[name]
  text = f"""{kind};
  __global__ void k(float* out) {{
    __shared__ P s[64];
    int t = threadIdx.x;
    P* p = &s[t];
    {store}
    __syncthreads();
    P q = s[t ^ 1];
    out[t] = ((float*)&q)[0];
  }}"""
  stop = lab.stop(text, size=64, launch="grid=(1) block=(64)")
  assert stop.finding.kind == "uninitialized_read"
