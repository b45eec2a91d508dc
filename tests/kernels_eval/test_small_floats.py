"""half and bfloat16: every conversion, and arithmetic against exact results."""

from fractions import Fraction

import numpy as np
import pytest

from kernels_eval.cpu import half_words
from kernels_eval.dtypes import DTYPES

_ALL = np.arange(65536, dtype=np.uint16)
_C = {"float16": "__half", "bfloat16": "__nv_bfloat16"}
_NAME = {"float16": "half", "bfloat16": "bfloat16"}
_PAIR = {"float16": "__half2", "bfloat16": "__nv_bfloat162"}


def _values(dtype, bits):
  """float64 values of 16-bit patterns."""
  if dtype == "float16":
    with np.errstate(invalid="ignore"):
      return bits.view(np.float16).astype(np.float64)
  with np.errstate(invalid="ignore"):
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def _nearest(dtype, values):
  """Bits of the nearest number, ties to even, from float64; NaN is 0x7fff.

  Not a formula of the code under test: a search in the sorted list of all
  finite numbers.
  """
  finite = _ALL[:0x7C00] if dtype == "float16" else _ALL[:0x7F80]
  numbers = _values(dtype, finite)
  limit = 2 * numbers[-1] - numbers[-2]  # where infinity would stand
  numbers = np.append(numbers, limit)
  out = []
  for v in np.atleast_1d(values):
    sign = 0x8000 if np.signbit(v) else 0
    if np.isnan(v):
      out.append(0x7FFF)
      continue
    a = min(abs(v), limit)
    i = int(np.searchsorted(numbers, a))
    if i and i < len(numbers):
      below, above = a - numbers[i - 1], numbers[i] - a
      if below < above or (below == above and i % 2 == 1):
        i -= 1
    out.append(sign | min(i, len(finite)))
  return np.array(out, np.uint16)


@pytest.mark.parametrize("dtype", _C)
def test_every_number_to_float_and_back(lab, dtype):
  c = _C[dtype]
  text = f"""
  __global__ void k(const {c}* x, float* wide, {c}* back, {c}* twice) {{
    int i = blockIdx.x * 256 + threadIdx.x;
    wide[i] = __{_NAME[dtype]}2float(x[i]);
    back[i] = __float2{_NAME[dtype]}((float)x[i]);
    twice[i] = {c}((double)(float)x[i]);
  }}"""
  stored = _ALL.view(DTYPES[dtype].storage)
  got = lab.run(
    text,
    outputs={
      "wide": ("float32", 65536),
      "back": (dtype, 65536),
      "twice": (dtype, 65536),
    },
    inputs={"x": stored},
    launch="grid=(256) block=(256)",
  )
  expected = _values(dtype, _ALL)
  with np.errstate(invalid="ignore"):
    wide = got["wide"].astype(np.float64)
  np.testing.assert_array_equal(wide, expected)
  canonical = np.where(np.isnan(expected), 0x7FFF, _ALL)
  np.testing.assert_array_equal(got["back"].view(np.uint16), canonical)
  np.testing.assert_array_equal(got["twice"].view(np.uint16), canonical)


@pytest.mark.parametrize("dtype", _C)
def test_rounding_at_every_tie(lab, dtype):
  """Between all neighbours: the tie itself, and the floats next to it."""
  finite = 0x7C00 if dtype == "float16" else 0x7F80
  v = _values(dtype, _ALL[:finite])
  ties = ((v[:-1] + v[1:]) / 2).astype(np.float32)
  x = np.concatenate(
    [
      ties,
      np.nextafter(ties, np.float32(np.inf)),
      np.nextafter(ties, np.float32(0)),
      -ties,
      np.array([65519.96, 65520, 3.4e38, 1e-45, np.inf, -np.inf], np.float32),
    ]
  )
  x = np.resize(x, -(-len(x) // 256) * 256).astype(np.float32)
  text = f"""
  __global__ void k(const float* x, {_C[dtype]}* out) {{
    int i = blockIdx.x * 256 + threadIdx.x;
    out[i] = {_C[dtype]}(x[i]);
  }}"""
  got = lab.out(
    text, dtype, len(x), inputs={"x": x},
    launch=f"grid=({len(x) // 256}) block=(256)",
  )  # fmt: skip
  np.testing.assert_array_equal(got.view(np.uint16), _nearest(dtype, x))


@pytest.mark.parametrize("dtype", _C)
def test_doubles_and_integers_round_once(lab, dtype):
  c = _C[dtype]
  text = f"""
  __global__ void k(const double* d, const long long* n, {c}* out) {{
    int t = threadIdx.x;
    out[t] = {c}(d[t]);
    out[32 + t] = __double2{_NAME[dtype]}(d[t]);
    out[64 + t] = {c}(n[t]);
    out[96 + t] = {c}((unsigned long long)n[t]);
    out[128 + t] = {c}((int)n[t]);
    out[160 + t] = __uint2{_NAME[dtype]}_rn((unsigned)n[t]);
  }}"""
  rng = np.random.default_rng(3)
  step = {"float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype]
  # Just beside a tie: by way of float these would round to it, then to even.
  d = np.concatenate(
    [(1 + step) * (1 + s * 2.0**-40) * 2.0 ** np.arange(8) for s in (-1, 0, 1)]
  )
  d = np.concatenate([d, rng.uniform(-9, 9, 8)])
  n = np.concatenate(
    [
      np.array([0, 1, 2049, 2051, 65503, 65519, 65520, 70000]),
      np.array([257, 259, (1 << 31) - 1, (1 << 30) + (1 << 22) + 1]),
      rng.integers(0, 1 << 31, 20),
    ]
  ).astype(np.int64)
  got = lab.out(
    text, dtype, 192, inputs={"d": d, "n": n}
  ).view(np.uint16)  # fmt: skip
  np.testing.assert_array_equal(got[:32], _nearest(dtype, d))
  np.testing.assert_array_equal(got[32:64], _nearest(dtype, d))
  expected = np.tile(_nearest(dtype, n.astype(np.float64)), 4)
  np.testing.assert_array_equal(got[64:], expected)


def _round_fraction(dtype, exact):
  """The nearest number to a fraction."""
  guess = float(exact)  # rounds once; settle which side of a tie by fractions
  bits = int(_nearest(dtype, guess)[0])
  best = None
  for candidate in (bits - 1, bits, bits + 1):
    value = float(_values(dtype, np.array([candidate & 0xFFFF], np.uint16))[0])
    if not np.isfinite(value):
      continue
    key = (abs(Fraction(value) - exact), candidate & 1)
    if best is None or key < best[0]:
      best = (key, candidate & 0xFFFF)
  return best[1]


@pytest.mark.parametrize("dtype", _C)
def test_arithmetic_rounds_once(lab, dtype):
  c = _C[dtype]
  text = f"""
  __global__ void k(const {c}* x, const {c}* y, const {c}* z, {c}* out) {{
    int i = blockIdx.x * 128 + threadIdx.x;
    {c} a = x[i], b = y[i], d = z[i];
    out[i] = a + b; out[512 + i] = __hsub(a, b); out[1024 + i] = a * b;
    out[1536 + i] = __hdiv(a, b); out[2048 + i] = __hfma(a, b, d);
    out[2560 + i] = -a; out[3072 + i] = __habs(a);
  }}"""
  rng = np.random.default_rng(4)
  # Moderate exponents: no overflow, a few subnormal results.
  exponent = {"float16": (5 << 10, 25 << 10), "bfloat16": (97 << 7, 157 << 7)}
  draw = lambda: (
    rng.integers(*exponent[dtype], 512).astype(np.uint16)
    | (rng.integers(0, 2, 512) << 15).astype(np.uint16)
  )
  x, y, z = draw(), draw(), draw()
  stored = DTYPES[dtype].storage
  got = lab.out(
    text, dtype, 7 * 512,
    inputs={"x": x.view(stored), "y": y.view(stored), "z": z.view(stored)},
    launch="grid=(4) block=(128)",
  ).view(np.uint16).reshape(7, 512)  # fmt: skip
  a, b, d = ([Fraction(v) for v in _values(dtype, w)] for w in (x, y, z))
  exact = [
    [p + q for p, q in zip(a, b, strict=True)],
    [p - q for p, q in zip(a, b, strict=True)],
    [p * q for p, q in zip(a, b, strict=True)],
    [p / q for p, q in zip(a, b, strict=True)],
    [p * q + r for p, q, r in zip(a, b, d, strict=True)],
    [-p for p in a],
    [abs(p) for p in a],
  ]
  limit = Fraction(65519 if dtype == "float16" else float(2.0**127))
  for row, values in zip(got, exact, strict=True):
    for bits, value in zip(row, values, strict=True):
      if value != 0 and abs(value) < limit:
        assert int(bits) == _round_fraction(dtype, value)


@pytest.mark.parametrize("dtype", _C)
def test_to_integers(lab, dtype):
  c, n = _C[dtype], _NAME[dtype]
  text = f"""
  __global__ void k(const {c}* x, long long* out) {{
    int t = threadIdx.x;
    {c} v = x[t];
    out[t] = (int)v; out[12 + t] = __{n}2int_rn(v);
    out[24 + t] = __{n}2uint_rz(v); out[36 + t] = (short)v;
    out[48 + t] = (signed char)v; out[60 + t] = __{n}2ll_rd(v);
    out[72 + t] = __{n}2int_ru(v); out[84 + t] = (bool)v;
  }}"""
  v = np.array([0, 0.5, 1.5, 2.5, -1.5, -0.5, 300, -300, 60000, -60000,
                np.inf, -np.inf])  # fmt: skip
  x = _nearest(dtype, v).view(DTYPES[dtype].storage)
  v = _values(dtype, x.view(np.uint16))
  got = lab.out(
    text, "int64", 96, inputs={"x": x}, launch="grid=(1) block=(12)"
  ).reshape(8, 12)
  clip = lambda w, low, high: np.clip(w, low, high).astype(np.int64)
  i32, big = (-(2**31), 2**31 - 1), 2**63
  np.testing.assert_array_equal(got[0], clip(np.trunc(v), *i32))
  np.testing.assert_array_equal(got[1], clip(np.rint(v), *i32))
  np.testing.assert_array_equal(got[2], clip(np.trunc(v), 0, 2**32 - 1))
  np.testing.assert_array_equal(got[3], clip(np.trunc(v), -32768, 32767))
  np.testing.assert_array_equal(got[4], clip(np.trunc(v), -128, 127))
  np.testing.assert_array_equal(got[5][:10], np.floor(v[:10]))
  assert list(got[5][10:]) == [big - 1, -big]
  np.testing.assert_array_equal(got[6], clip(np.ceil(v), *i32))
  np.testing.assert_array_equal(got[7], v != 0)


@pytest.mark.parametrize("dtype", _C)
def test_directed_conversions(lab, dtype):
  c, n = _C[dtype], _NAME[dtype]
  text = f"""
  __global__ void k(const float* x, {c}* out) {{
    int t = threadIdx.x;
    out[t] = __float2{n}_rd(x[t]); out[32 + t] = __float2{n}_ru(x[t]);
    out[64 + t] = __float2{n}_rz(x[t]);
  }}"""
  x = np.random.default_rng(5).uniform(-4, 4, 32).astype(np.float32)
  x[:4] = [0, 1, 1e-30, -1e-30] if dtype == "float16" else [0, 1, 2, -2]
  got = lab.out(text, dtype, 96, inputs={"x": x}).view(np.uint16)
  down, up, zero = _values(dtype, got).reshape(3, 32)
  x = x.astype(np.float64)
  assert (down <= x).all() and (up >= x).all() and (down < up).sum() > 20
  np.testing.assert_array_equal(zero, np.where(x > 0, down, up))
  between = _nearest(dtype, x)
  nearest = _values(dtype, between)
  assert ((nearest == down) | (nearest == up)).all()


@pytest.mark.parametrize("dtype", _C)
def test_pairs_and_functions(lab, dtype):
  c, p, n = _C[dtype], _PAIR[dtype], _NAME[dtype]
  pair = p.strip("_").removeprefix("nv_")
  text = f"""
  __global__ void k(const {c}* x, float* out) {{
    const {p}* v = (const {p}*)x;
    {p} a = v[0], b = v[1];  // (1, 2), (3, 4)
    {p} sum = __hadd2(a, b), product = a * b, f = __hfma2(a, b, a);
    out[0] = __low2float(sum); out[1] = __high2float(sum);
    out[2] = __low2float(product); out[3] = __high2float(product);
    out[4] = __low2float(f); out[5] = __high2float(f);
    {p} swapped = __lowhigh2highlow(a), twice = __{n}2{pair}(b.x);
    out[6] = (float)swapped.x; out[7] = (float)twice.y;
    float2 wide = __{pair}2float2(__hsub2(b, a));
    out[8] = wide.x; out[9] = wide.y;
    out[10] = (float)__hmax(a.x, b.x); out[11] = (float)__hmin(a.x, b.x);
    out[12] = (float)hsqrt(b.y); out[13] = (float)hexp({c}(0.0f));
    out[14] = __hlt(a.x, b.x) + 2 * __hgt(a.x, b.x) + 4 * __heq(a.x, a.x)
              + 8 * __hne(a.x, b.x) + 16 * __hge(b.x, b.x)
              + 32 * __hle(b.x, a.x);
    out[15] = __hisnan({c}(NAN)) + 2 * __hisinf({c}(INFINITY));
    {p} m = __hmax2(a, __floats2{pair}_rn(5.0f, 0.0f));
    out[16] = (float)m.x; out[17] = (float)m.y;
    out[18] = (float)hrcp(b.y); out[19] = (float)htanh({c}(0.0f));
    a += b; {c} s = a.x; s += b.x; s++;
    out[20] = (float)s; out[21] = (float)__hadd_sat(s, s);
    out[22] = __{n}_as_ushort({c}(1.0f)) == __{n}_as_ushort(__ushort_as_{n}(
      __{n}_as_ushort({c}(1.0f))));
    out[23] = __hbeq2(b, b) + 2 * __hblt2(b, a);
  }}"""
  x = DTYPES[dtype].encode(np.array([1.0, 2, 3, 4]))
  got = lab.out(text, size=24, inputs={"x": x}, launch="grid=(1) block=(1)")
  expected = [4, 6, 3, 8, 4, 10, 2, 3, 2, 2, 3, 1, 2, 1, 1 + 4 + 8 + 16, 3,
              5, 2, 0.25, 0, 8, 1, 1, 1 + 2]  # fmt: skip
  np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
  ("text", "needed"),
  [
    ("__device__ float half(float v) { return v / 2; }", False),
    ("int f(int n) { int half = n / 2; return n - half; }", False),
    ("float half2, half;", False),
    ("for (int i = 0, half = 4; i < half; i++) {}", False),
    ("void f(int half) { g(half); }", False),
    ("void f(float* half, float& half2) {}", False),
    ("#define half 0.5f\nfloat v = half;", True),  # only a longer compilation
    ("using half = float; half x;", False),
    ("int lower_half = 1; float halfway, behalf;", False),
    ('// half of it\nconst char* s = "half";', False),
    ("#include <cuda_fp16.h>\nint half = 1;", True),
    ('#include "cuda_bf16.h"', True),
    ("half x;", True),
    ("const half* p = (const half*)q;", True),
    ("out[0] = half(1.0f);", True),
    ("return half(1.0f);", True),
    ("auto v = static_cast<half>(x);", True),
    ("constexpr int n = sizeof(half);", True),
    ("half2 v = make_half2(a, b);", True),
    ("float v = __half2float(x);", True),
    ("__nv_bfloat16 v;", True),
    ("#define T half\nT x;", True),
    ("float2 v = __bfloat1622float2(x);", True),
  ],
)
def test_when_the_declarations_are_needed(text, needed):
  assert half_words.needed(text) == needed


@pytest.mark.parametrize(
  "text",
  [
    "__device__ float half(float v) { return v / 2; }\n"
    "__global__ void k(float* out) { out[0] = half(2.0f); }",
    "__device__ float half2 = 1.0f;\n"
    "__global__ void k(float* out) { int half = 1; out[0] = half * half2; }",
    "__global__ void k(float* out) { half h = half(1.0f); out[0] = h; }",
    "typedef half real;\n"
    "__global__ void k(float* out) { out[0] = (float)(real)1.0f; }",
  ],
)
def test_the_plain_names_may_be_somebody_elses(lab, text):
  assert lab.out(text, size=1, launch="grid=(1) block=(1)")[0] == 1.0
