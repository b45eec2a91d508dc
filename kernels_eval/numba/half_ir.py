"""Half precision without CUDA's headers.

numba-cuda compiles float16 to calls of small C++ functions, which it would
build with NVRTC and cuda_fp16.h (over a second). Those that kernels use are
defined here as LLVM IR, each from two conversions: exact for + - * / and sqrt,
since float holds more than twice as many digits. Conversions themselves are
inline PTX in Numba's IR; for the CPU they have names (`CONVERSIONS`).
"""

import re

_ARITHMETIC = {
  **{f"_Z{m}RK6__halfS1__nbst": op for m, op in (
    ("pl", "fadd"), ("mi", "fsub"), ("ml", "fmul"), ("dv", "fdiv"))},
  **{f"_ZL{len(name)}{name}6__halfS__nbst": op for name, op in (
    ("__hadd", "fadd"), ("__hsub", "fsub"), ("__hmul", "fmul"),
    ("__hdiv", "fdiv"), ("__hadd_rn", "fadd"), ("__hsub_rn", "fsub"),
    ("__hmul_rn", "fmul"))},
}  # fmt: skip
_COMPARISONS = {
  **{f"_Z{m}RK6__halfS1__nbst": p for m, p in (
    ("eq", "oeq"), ("ne", "une"), ("gt", "ogt"), ("lt", "olt"), ("ge", "oge"),
    ("le", "ole"))},
  **{f"_ZL5__h{m}6__halfS__nbst": p for m, p in (
    ("eq", "oeq"), ("ne", "one"), ("gt", "ogt"), ("lt", "olt"), ("ge", "oge"),
    ("le", "ole"))},
}  # fmt: skip
_FUNCTIONS = {
  "__habs": "fabsf", "hsqrt": "sqrtf", "hrsqrt": "rsqrtf", "hlog": "logf",
  "hlog2": "log2f", "hlog10": "log10f", "hexp": "expf", "hexp2": "exp2f",
  "hexp10": "exp10f", "htanh": "tanhf", "htanh_approx": "tanhf",
  "hcos": "cosf", "hsin": "sinf", "htrunc": "truncf", "hceil": "ceilf",
  "hfloor": "floorf", "hrint": "rintf",
}  # fmt: skip
_SMALLER_OR_LARGER = {"__hmax": "fmaxf", "__hmin": "fminf"}
_DECLARED = re.compile(r'^declare i32 @"(_Z\w+_nbst)"', re.M)
CONVERSION = re.compile(
  r'asm (?:sideeffect )? ?"cvt\.(?:rn\.|rni\.)?(\w+)\.(\w+) \$0, \$1;", '
  r'"=\w,\w"'
)


def _define(name, parameters, body, result="half"):
  """A function of Numba's convention: results and parameters by pointer."""
  kind = {"half": "i16", "bool": "i8", "float": "float"}[result]
  head = ", ".join([f"{kind}* %r", *(f"{t}* %p{i}" for i, t in parameters)])
  loads = "".join(
    f"  %v{i} = load {t}, {t}* %p{i}\n"
    + (f"  %f{i} = call float @h2f_(i16 %v{i})\n" if t == "i16" else "")
    for i, t in parameters
  )
  last = {
    "half": "  %h = call i16 @f2h_(float %s)\n  store i16 %h, i16* %r\n",
    "bool": "  %h = zext i1 %s to i8\n  store i8 %h, i8* %r\n",
    "float": "  store float %s, float* %r\n",
  }[result]
  return name, (
    f"define linkonce_odr i32 @{name}({head}) alwaysinline {{\n"
    f"{loads}{body}{last}  ret i32 0\n}}\n"
  )


def _halves(count):
  return [(i, "i16") for i in range(count)]


def _definitions():
  for name, op in _ARITHMETIC.items():
    yield _define(name, _halves(2), f"  %s = {op} float %f0, %f1\n")
  for name, predicate in _COMPARISONS.items():
    body = f"  %s = fcmp {predicate} float %f0, %f1\n"
    yield _define(name, _halves(2), body, "bool")
  for name, function in _FUNCTIONS.items():
    body = f"  %s = call float @__nv_{function}(float %f0)\n"
    yield _define(f"_ZL{len(name)}{name}6__half_nbst", _halves(1), body)
  for name, function in _SMALLER_OR_LARGER.items():
    body = f"  %s = call float @__nv_{function}(float %f0, float %f1)\n"
    yield _define(f"_ZL{len(name)}{name}6__halfS__nbst", _halves(2), body)
  negated = "  %s = fsub float -0.0, %f0\n"
  yield _define("_ZngRK6__half_nbst", _halves(1), negated)
  yield _define("_ZL6__hneg6__half_nbst", _halves(1), negated)
  yield _define(
    "_ZpsRK6__half_nbst", _halves(1), "  %s = fadd float %f0, -0.0\n"
  )
  yield _define(
    "_ZL4hrcp6__half_nbst", _halves(1), "  %s = fdiv float 1.0, %f0\n"
  )
  fma = "  %s = call float @__nv_fmaf(float %f0, float %f1, float %f2)\n"
  yield _define("_ZL6__hfma6__halfS_S__nbst", _halves(3), fma)
  same = "  %s = fadd float %f0, -0.0\n"
  yield _define("_ZL12__half2float6__half_nbst", _halves(1), same, "float")
  for name in ("_ZL12__float2halff_nbst", "_ZL15__float2half_rnf_nbst"):
    yield _define(name, [(0, "float")], "  %s = fadd float %v0, -0.0\n")


_LIBDEVICE = "".join(
  f"declare float @__nv_{f}(float)\n"
  for f in dict.fromkeys(_FUNCTIONS.values())
) + (
  "declare float @__nv_fmaxf(float, float)\n"
  "declare float @__nv_fminf(float, float)\n"
  "declare float @__nv_fmaf(float, float, float)\n"
)
_ON_DEVICE = """
define linkonce_odr float @h2f_(i16 %x) alwaysinline {
  %r = call float asm "cvt.f32.f16 $0, $1;", "=f,h"(i16 %x)
  ret float %r
}
define linkonce_odr i16 @f2h_(float %x) alwaysinline {
  %r = call i16 asm "cvt.rn.f16.f32 $0, $1;", "=h,f"(float %x)
  ret i16 %r
}
"""
_ON_HOST = """
declare float @ke_half_to_float(i16 zeroext)
declare zeroext i16 @ke_float_to_half(float)
define float @h2f_(i16 %x) alwaysinline {
  %r = call float @ke_half_to_float(i16 zeroext %x)
  ret float %r
}
define i16 @f2h_(float %x) alwaysinline {
  %r = call zeroext i16 @ke_float_to_half(float %x)
  ret i16 %r
}
define float @ke.cvt.f32.f16(i16 %x) alwaysinline {
  %r = call float @h2f_(i16 %x)
  ret float %r
}
define double @ke.cvt.f64.f16(i16 %x) alwaysinline {
  %f = call float @h2f_(i16 %x)
  %r = fpext float %f to double
  ret double %r
}
define i16 @ke.cvt.f16.f32(float %x) alwaysinline {
  %r = call i16 @f2h_(float %x)
  ret i16 %r
}
define i16 @ke.cvt.f16.f64(double %x) alwaysinline {
  %f = fptrunc double %x to float
  %r = call i16 @f2h_(float %f)
  ret i16 %r
}
declare float @llvm.rint.f32(float)
"""


def _whole_conversions():
  for bits in (8, 16, 32, 64):
    for sign, letter in (("s", "s"), ("u", "u")):
      cast = "sitofp" if sign == "s" else "uitofp"
      saturate = f"llvm.fpto{sign}i.sat.i{bits}.f32"
      yield (
        f"declare i{bits} @{saturate}(float)\n"
        f"define i16 @ke.cvt.f16.{letter}{bits}(i{bits} %x) alwaysinline {{\n"
        f"  %f = {cast} i{bits} %x to float\n"
        "  %r = call i16 @f2h_(float %f)\n  ret i16 %r\n}\n"
        f"define i{bits} @ke.cvt.{letter}{bits}.f16(i16 %x) alwaysinline {{\n"
        "  %f = call float @h2f_(i16 %x)\n"
        "  %w = call float @llvm.rint.f32(float %f)\n"
        f"  %r = call i{bits} @{saturate}(float %w)\n  ret i{bits} %r\n}}\n"
      )


def _declared(texts):
  names = {name for text in texts for name in _DECLARED.findall(text)}
  return names.intersection(name for name, _ in _definitions())


def is_used(texts: list[str]) -> bool:
  """Whether modules call a function of half precision."""
  return bool(_declared(texts))


def for_nvvm(texts: list[str]) -> str:
  """A module in NVVM's IR that defines what the texts call."""
  names = _declared(texts)
  head = "".join(re.findall(r"^target .*\n", texts[0], re.M))
  bodies = [text for name, text in _definitions() if name in names]
  version = "!nvvmir.version = !{!0}\n!0 = !{i32 2, i32 0, i32 3, i32 1}\n"
  return "".join([head, _ON_DEVICE, *bodies, _LIBDEVICE, version])


def for_host() -> str:
  """The functions for the CPU, in terms of the runtime's conversions."""
  bodies = [text for _, text in _definitions()]
  return "".join([_ON_HOST, *_whole_conversions(), *bodies, _LIBDEVICE])
