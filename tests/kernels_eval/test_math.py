"""Mathematical functions, conversions and integer intrinsics against NumPy."""

import math

import numpy as np
import pytest

_RNG = np.random.default_rng(0)
X = np.concatenate(
  [
    np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 1e-3, 80.0, -7.25]),
    _RNG.uniform(-3, 3, 53),
  ]
).astype(np.float32)
U = np.abs(X) / 3.5 + np.float32(1e-3)  # positive
V = (np.abs(X) / 128 + np.float32(1e-3)).astype(np.float32)  # within (0, 1)


def _float(x):
  return x.astype(np.float32).astype(np.float64)


def _vectorised(f):
  return lambda *arrays: np.array(
    [f(*(float(v) for v in values)) for values in zip(*arrays, strict=True)]
  )


# CUDA name of the float version: (argument, NumPy on float64)
UNARY = {
  "sinf": ("x", np.sin), "cosf": ("x", np.cos), "tanf": ("x", np.tan),
  "asinf": ("v", np.arcsin), "acosf": ("v", np.arccos),
  "atanf": ("x", np.arctan), "sinhf": ("x", np.sinh), "coshf": ("x", np.cosh),
  "tanhf": ("x", np.tanh), "asinhf": ("x", np.arcsinh),
  "acoshf": ("u + 1", lambda u: np.arccosh(_float(u + 1))),
  "atanhf": ("v", np.arctanh), "expf": ("x / 8", lambda x: np.exp(x / 8)),
  "exp2f": ("x / 8", lambda x: np.exp2(x / 8)),
  "exp10f": ("x / 8", lambda x: 10.0 ** (x / 8)), "expm1f": ("v", np.expm1),
  "logf": ("u", np.log), "log2f": ("u", np.log2), "log10f": ("u", np.log10),
  "log1pf": ("u", np.log1p), "sqrtf": ("u", np.sqrt),
  "rsqrtf": ("u", lambda u: 1 / np.sqrt(u)), "cbrtf": ("x", np.cbrt),
  "rcbrtf": ("u", lambda u: 1 / np.cbrt(u)), "floorf": ("x", np.floor),
  "ceilf": ("x", np.ceil), "truncf": ("x", np.trunc), "rintf": ("x", np.rint),
  "nearbyintf": ("x", np.rint),
  "roundf": ("x", lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x)),
  "fabsf": ("x", np.abs), "erff": ("x", _vectorised(math.erf)),
  "erfcf": ("v", _vectorised(math.erfc)),
  "tgammaf": ("u", _vectorised(math.gamma)),
  "lgammaf": ("u", _vectorised(math.lgamma)),
  "normcdff": ("x", _vectorised(lambda v: 0.5 * math.erfc(-v / 2**0.5))),
  "sinpif": ("x", lambda x: np.sin(np.pi * (x - 2 * np.rint(x / 2)))),
  "cospif": ("x", lambda x: np.cos(np.pi * (x - 2 * np.rint(x / 2)))),
  "__expf": ("x / 8", lambda x: np.exp(x / 8)), "__logf": ("u", np.log),
  "__log2f": ("u", np.log2), "__sinf": ("x", np.sin), "__cosf": ("x", np.cos),
  "__saturatef": ("x", lambda x: np.clip(x, 0, 1)),
  "__frsqrt_rn": ("u", lambda u: 1 / np.sqrt(u)),
  "__frcp_rn": ("u", lambda u: 1 / u), "__fsqrt_rn": ("u", np.sqrt),
  # The same through C++ overloads, std:: and double.
  "exp": ("v", np.exp), "std::exp": ("v", np.exp), "std::sqrt": ("u", np.sqrt),
  "std::abs": ("x", np.abs), "abs": ("x", np.abs),
  "rsqrt": ("u", lambda u: 1 / np.sqrt(u)), "std::tanh": ("x", np.tanh),
  "fabs": ("x", np.abs), "std::floor": ("x", np.floor),
  "log1p": ("u", np.log1p), "erf": ("x", _vectorised(math.erf)),
}  # fmt: skip
BINARY = {
  "powf": ("u, x / 8", lambda x, u: u ** (x / 8)),
  "fmodf": ("x, u", lambda x, u: np.fmod(x, u)),
  "atan2f": ("x, u", lambda x, u: np.arctan2(x, u)),
  "hypotf": ("x, u", lambda x, u: np.hypot(x, u)),
  "fmaxf": ("x, u", lambda x, u: np.maximum(x, u)),
  "fminf": ("x, u", lambda x, u: np.minimum(x, u)),
  "fdimf": ("x, u", lambda x, u: np.maximum(x - u, 0)),
  "copysignf": ("u, x", lambda x, u: np.copysign(u, x)),
  "max": ("x, u", lambda x, u: np.maximum(x, u)),
  "std::min": ("x, u", lambda x, u: np.minimum(x, u)),
  "__fdividef": ("x, u", lambda x, u: x / u),
  "__powf": ("u, x / 8", lambda x, u: u ** (x / 8)),
  "pow": ("u, 2", lambda x, u: u**2),
  "fdividef": ("x, u", lambda x, u: x / u),
}  # fmt: skip


def test_functions_of_floats(lab):
  """All in one kernel; 4 units in the last place are allowed."""
  expressions = {f"{n}({a})": (n, f) for n, (a, f) in UNARY.items()}
  expressions |= {f"{n}({a})": (n, f) for n, (a, f) in BINARY.items()}
  text = "__global__ void k(const float* px, const float* pu, const float* pv,"
  text += " float* out) {\n  int t = threadIdx.x;\n"
  text += "  float x = px[t], u = pu[t], v = pv[t]; (void)v;\n"
  for i, expression in enumerate(expressions):
    text += f"  out[{i * 64} + t] = {expression};\n"
  got = lab.out(
    text + "}",
    size=64 * len(expressions),
    inputs={"px": X, "pu": U, "pv": V},
    launch="grid=(1) block=(64)",
  ).reshape(-1, 64)
  x, u, v = (a.astype(np.float64) for a in (X, U, V))
  for row, (expression, (name, f)) in zip(
    got, expressions.items(), strict=True
  ):
    if name in BINARY:
      expected = f(x, u)
    else:
      argument = UNARY[name][0][0]
      expected = f({"x": x, "u": u, "v": v}[argument])
    np.testing.assert_allclose(
      row, expected, rtol=5e-7, atol=2e-7, err_msg=expression
    )


def test_functions_of_doubles(lab):
  names = "sin cos exp log sqrt tanh erf cbrt floor log2 exp2 atan".split()
  text = "__global__ void k(const double* x, double* out) {\n"
  for i, name in enumerate(names):
    text += f"  out[{i * 32} + threadIdx.x] = {name}(x[threadIdx.x]);\n"
  x = np.linspace(0.1, 5, 32)
  got = lab.out(text + "}", "float64", 32 * len(names), inputs={"x": x})
  reference = {"erf": _vectorised(math.erf), "atan": np.arctan}
  for row, name in zip(got.reshape(-1, 32), names, strict=True):
    f = reference.get(name) or getattr(np, name)
    np.testing.assert_allclose(row, f(x), rtol=1e-14, err_msg=name)


def test_functions_with_two_results(lab):
  text = """
  __global__ void k(const float* x, float* out) {
    int t = threadIdx.x, e, q;
    float s, c, whole, v = x[t];
    sincosf(v, &s, &c);
    out[t] = s; out[64 + t] = c;
    out[128 + t] = frexpf(v, &e); out[192 + t] = e;
    out[256 + t] = modff(v, &whole); out[320 + t] = whole;
    out[384 + t] = ldexpf(v, 3); out[448 + t] = remquof(v, 0.75f, &q);
    __sincosf(v, &out[512 + t], &out[576 + t]);
  }"""
  got = lab.out(
    text, size=640, inputs={"x": X}, launch="grid=(1) block=(64)"
  ).reshape(-1, 64)
  mantissa, exponent = np.frexp(X)
  fraction, whole = np.modf(X)
  x = X.astype(np.float64)
  rest = x - 0.75 * np.rint(x / 0.75)
  expected = [
    np.sin(x), np.cos(x), mantissa, exponent, fraction, whole, X * 8, rest,
    np.sin(x), np.cos(x),
  ]  # fmt: skip
  np.testing.assert_allclose(got, expected, rtol=3e-7, atol=1e-7)


def test_inverse_error_functions(lab):
  text = """
  __global__ void k(const double* p, double* out) {
    double v = p[threadIdx.x];
    out[threadIdx.x] = normcdf(normcdfinv(v)) - v;
    out[32 + threadIdx.x] = erf(erfinv(2 * v - 1)) - (2 * v - 1);
    out[64 + threadIdx.x] = erfc(erfcinv(v)) - v;
  }"""
  p = np.concatenate([np.linspace(0.001, 0.999, 30), [1e-9, 1 - 1e-9]])
  got = lab.out(text, "float64", 96, inputs={"p": p})
  np.testing.assert_allclose(got, 0, atol=1e-14)


def test_special_values(lab):
  text = """
  __global__ void k(float* out) {
    out[0] = INFINITY; out[1] = -INFINITY; out[2] = NAN;
    out[3] = isnan(NAN) + 2 * isinf(INFINITY) + 4 * isfinite(1.0f)
             + 8 * isnan(1.0f) + 16 * signbit(-1.0f) + 32 * std::isnan(NAN);
    out[4] = FLT_MAX; out[5] = FLT_EPSILON; out[6] = CUDART_PI_F;
    out[7] = fmaxf(NAN, 1.0f); out[8] = CUDART_INF_F; out[9] = M_PI;
    out[10] = FLT_MIN; out[11] = sqrtf(-1.0f); out[12] = 1.0f / 0.0f;
    out[13] = sinpif(1e6f); out[14] = __int_as_float(0x7f800000);
  }"""
  got = lab.out(text, size=15, launch="grid=(1) block=(1)")
  f = np.finfo(np.float32)
  expected = [
    np.inf, -np.inf, np.nan, 1 + 2 + 4 + 16 + 32, f.max, f.eps, np.pi, 1,
    np.inf, np.pi, f.tiny, np.nan, np.inf, 0, np.inf,
  ]  # fmt: skip
  np.testing.assert_array_equal(got, np.array(expected, np.float32))


_EDGES = np.array(
  [0.0, 0.4, 0.5, 0.6, 1.5, 2.5, -0.5, -1.5, -2.5, 7.9, -7.9, 3e9, -3e9, 5e9,
   2e19, -2e19, np.inf, -np.inf, np.nan, 2147483520.0, -2147483648.0, 16777217],
  np.float32,
)  # fmt: skip
_TO_WHOLE = {"rn": np.rint, "rz": np.trunc, "ru": np.ceil, "rd": np.floor}


def _saturated(values, dtype, nan):
  info = np.iinfo(dtype)
  out = []
  for v in values:
    if np.isnan(v):
      out.append(nan)
    elif np.isinf(v):
      out.append(info.max if v > 0 else info.min)
    else:
      out.append(min(max(int(v), info.min), info.max))
  return np.array([np.array(v).astype(np.uint64) for v in out])


@pytest.mark.parametrize("source", ["float", "double"])
def test_conversions_to_integers_saturate(lab, source):
  """Every type and rounding mode; results as 64 bits."""
  targets = {
    "int": np.int32,
    "uint": np.uint32,
    "ll": np.int64,
    "ull": np.uint64,
  }
  wide = {"int": "long long", "uint": "unsigned", "ll": "long long",
          "ull": "unsigned long long"}  # fmt: skip
  n = len(_EDGES)
  text = f"__global__ void k(const {source}* x, long long* out) {{\n"
  text += "  int t = threadIdx.x;\n"
  expected = []
  for mode, whole in _TO_WHOLE.items():
    for name, dtype in targets.items():
      text += (
        f"  out[{len(expected) * n} + t] = (long long)({wide[name]})"
        f"__{source}2{name}_{mode}(x[t]);\n"
      )
      bits = np.iinfo(dtype).bits
      is_wide = source == "double" or bits == 64
      nan = 0
      if is_wide:  # PTX: the highest bit alone
        nan = np.iinfo(dtype).min if name in ("int", "ll") else 1 << (bits - 1)
      expected.append(_saturated(whole(_EDGES.astype(float)), dtype, nan))
  x = _EDGES if source == "float" else _EDGES.astype(np.float64)
  got = lab.out(
    text + "}",
    "int64",
    n * len(expected),
    inputs={"x": x},
    launch=f"grid=(1) block=({n})",
  )
  np.testing.assert_array_equal(
    got.reshape(-1, n).view(np.uint64), np.array(expected)
  )


def test_rounding_modes(lab):
  """Directed results are the neighbours of the exact ones, in order."""
  operations = {
    "fadd": "a, b", "fsub": "a, b", "fmul": "a, b", "fdiv": "a, b",
    "fsqrt": "fabsf(a)", "frcp": "a", "fmaf": "a, b, a",
  }  # fmt: skip
  modes = ("rd", "rn", "ru", "rz")
  text = "__global__ void k(const float* x, const float* y, float* out) {\n"
  text += "  int t = threadIdx.x; float a = x[t] + 0.1f, b = y[t];\n"
  place = 0
  for name, arguments in operations.items():
    for mode in modes:
      text += f"  out[{place} + t] = __{name}_{mode}({arguments});\n"
      place += 64
  text += f"  out[{place} + t] = a; out[{place + 64} + t] = b; }}"
  got = lab.out(
    text, size=place + 128, inputs={"x": X, "y": U},
    launch="grid=(1) block=(64)",
  ).reshape(-1, 64)  # fmt: skip
  a, b = (got[-2].astype(np.longdouble), got[-1].astype(np.longdouble))
  exact = {
    "fadd": a + b, "fsub": a - b, "fmul": a * b, "fdiv": a / b,
    "fsqrt": np.sqrt(np.abs(a)), "frcp": 1 / a, "fmaf": a * b + a,
  }  # fmt: skip
  for i, name in enumerate(operations):
    down, nearest, up, zero = got[4 * i : 4 * i + 4]
    e = exact[name]
    assert (down <= e).all() and (up >= e).all(), name
    wrong = (nearest != down) & (nearest != up)
    assert not wrong.any(), name
    gap = np.nextafter(down, np.float32(np.inf)) >= up
    assert gap.all(), name
    np.testing.assert_array_equal(zero, np.where(e > 0, down, up), name)
    assert (down != up).any(), name


def test_conversions_to_floats(lab):
  text = """
  __global__ void k(const long long* x, const double* d, float* out) {
    int t = threadIdx.x;
    out[t] = __ll2float_rz(x[t]); out[4 + t] = __ll2float_ru(x[t]);
    out[8 + t] = __ll2float_rd(x[t]); out[12 + t] = __ll2float_rn(x[t]);
    out[16 + t] = __double2float_rz(d[t]);
    out[20 + t] = __double2float_ru(d[t]);
    out[24 + t] = __double2float_rd(d[t]); out[28 + t] = (float)d[t];
  }"""
  x = np.array([16777217, -16777217, 2**62 + 1, 5], np.int64)
  d = np.array([1 + 2.0**-30, -1 - 2.0**-30, 1e300, 0.5])
  got = lab.out(
    text, inputs={"x": x, "d": d}, launch="grid=(1) block=(4)"
  ).reshape(8, 4)
  up, down = np.float32(np.inf), np.float32(-np.inf)
  low, high = np.float32(16777216), np.float32(16777218)
  big, one = np.float32(2.0**62), np.float32(1)
  limit = np.finfo(np.float32).max
  expected = [
    [low, -low, big, 5],
    [high, -low, np.nextafter(big, up), 5],
    [low, -high, big, 5],
    [low, -low, big, 5],
    [1, -1, limit, 0.5],
    [np.nextafter(one, up), -1, np.inf, 0.5],
    [1, np.nextafter(-one, down), limit, 0.5],
    [1, -1, np.inf, 0.5],
  ]
  np.testing.assert_array_equal(got, expected)


# What <cmath> takes by promotion to double: (expression, value)
PROMOTED = {
  "fmax(x[0], 0)": 1.5, "fmin(1, x[0])": 1.0, "fmax(2u, x[0])": 2.0,
  "ceil(n / blockDim.x)": 9.0, "sqrt((unsigned)n)": 3.0, "exp(0LL)": 1.0,
  "log(sizeof(char))": 0.0, "tan(0)": 0.0, "atan(0u)": 0.0, "erf(0)": 0.0,
  "cbrt(27)": 3.0, "round(3L)": 3.0, "trunc((short)3)": 3.0, "log1p(0)": 0.0,
  "pow(1.0f, 2u)": 1.0, "pow(2, 3)": 8.0, "pow(2u, 0.5f) * 0 + 1": 1.0,
  "pow(3.0f, 2)": 9.0, "pow(2.0, 3LL)": 8.0, "atan2(0, 1)": 0.0,
  "fmod(7, 4.0f)": 3.0, "hypot(3, 4u)": 5.0, "copysign(2, x[0])": 2.0,
  "fdim(5, 3)": 2.0, "remainder(7, 4)": -1.0, "fma(2, x[0], 1)": 4.0,
  "ldexp(3, 2)": 12.0, "scalbn(3u, 1)": 6.0, "lround(7) + 0.0": 7.0,
  "std::sqrt(n)": 3.0, "std::fmax(n, 2.5f)": 9.0, "std::pow(n, 2)": 81.0,
  "fabs(-4)": 4.0, "floor(true)": 1.0, "isnan(n) + isfinite(n)": 1.0,
  "(sizeof(fmax(x[0], 0)) == 8) + (sizeof(fmax(x[0], x[0])) == 4)": 2.0,
  "(sizeof(sqrt(2)) == 8) + (sizeof(sqrt(2.0f)) == 4)": 2.0,
}  # fmt: skip


def test_mixed_arguments_are_promoted_as_in_cmath(lab):
  stores = "".join(f"out[{i}] = {e};\n" for i, e in enumerate(PROMOTED))
  text = f"__global__ void k(const float* x, float* out, int n) {{\n{stores}}}"
  x = np.array([1.5], np.float32)
  got = lab.out(
    text,
    size=len(PROMOTED),
    inputs={"x": x},
    dims={"n": 9},
    launch="grid=(1) block=(1)",
  )
  np.testing.assert_allclose(got, list(PROMOTED.values()), rtol=1e-6)
