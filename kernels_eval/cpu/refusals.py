"""What a candidate's text may not hold on the CPU executor, by name.

Three kinds: what the CPU cannot do (inline assembly, textures, ...), names that
belong to the executor, and preprocessor lines that reach outside of the text.
The sandbox and the run-time checks do not depend on any of this. It gives
better messages, and it keeps a candidate honest about being CUDA C++.
"""

import pathlib
import re

from kernels_eval import source
from kernels_eval.cpu import declarations
from kernels_eval.launch_plan import CandidateError
from kernels_eval.schema import Status

HEADERS = frozenset(
  """cuda_runtime.h cuda.h cuda_runtime_api.h device_launch_parameters.h
  device_functions.h vector_types.h vector_functions.h math.h cmath
  math_constants.h
  stdint.h cstdint float.h cfloat limits.h climits stddef.h cstddef stdio.h
  cstdio assert.h cassert string.h cstring cuda_fp16.h cuda_fp16.hpp cuda_bf16.h
  cuda_bf16.hpp sm_60_atomic_functions.h stdlib.h cstdlib type_traits
  limits""".split()
)
_UNSUPPORTED_HEADERS = {  # first part of the name: what it would bring
  "cooperative_groups": "cooperative groups",
  "mma": "tensor-core operations",
  "cuda/": "libcu++",
  "cub/": "CUB",
  "thrust/": "Thrust",
  "cutlass/": "CUTLASS",
  "cute/": "CuTe",
  "curand": "cuRAND",
  "cublas": "cuBLAS",
  "cuda_fp8": "8-bit floats",
  "cuda_fp4": "4-bit floats",
  "cuda_pipeline": "asynchronous copies",
  "cuda_awbarrier": "asynchronous barriers",
  "texture": "textures",
  "surface": "surfaces",
  "torch/": "PyTorch",
}
_UNSUPPORTED_NAMES = {
  "asm": "inline assembly",
  "__asm__": "inline assembly",
  "__asm": "inline assembly",
  "wmma": "tensor-core operations",
  "nvcuda": "tensor-core operations",
  "cooperative_groups": "cooperative groups",
  "__pipeline_memcpy_async": "asynchronous copies",
  "cudaTextureObject_t": "textures",
  "cudaSurfaceObject_t": "surfaces",
  "tex1Dfetch": "textures",
  "tex1D": "textures",
  "tex2D": "textures",
  "thrust": "Thrust",
  "cub": "CUB",
  "__attribute__": "GNU attributes",
  "__attribute": "GNU attributes",
  "gnu": "GNU attributes",
  "__gnu__": "GNU attributes",
}
# The compiler's own functions go past the run-time checks or are not CUDA.
_BUILTIN = re.compile(r"__(?:builtin|sync|atomic|c11_atomic)_\w+")
_ALLOWED_BUILTIN = re.compile(
  r"__builtin_(?:expect|assume|unreachable|assume_aligned|nanf?|inff?|huge_valf?"
  r"|fabsf?|fmaf?|sqrtf?|isnan|isinf|isfinite|signbit|popcountl?l?|clzl?l?"
  r"|ctzl?l?|ffsl?l?|parity|bswap(?:16|32|64))"
)
_KEYWORDS = frozenset(
  """alignas alignof auto bool break case catch char class const constexpr
  const_cast continue decltype default delete do double dynamic_cast else enum
  explicit extern false float for friend goto if int long mutable namespace new
  noexcept nullptr operator private protected public register reinterpret_cast
  return short signed sizeof static static_assert static_cast struct switch
  template this throw true try typedef typename union unsigned using virtual
  void volatile while __shared__ __global__ defined""".split()
)
# GNU attributes that change nothing, or have another name in CUDA.
_HARMLESS_ATTRIBUTE = re.compile(
  r"__attribute__ \( \( (?:(?:__)?(?:unused|always_inline|noinline|pure|const"
  r"|hot|cold|flatten)(?:__)?(?: ,)? )+\) \)"
)
_ALIGNED_ATTRIBUTE = re.compile(
  r"__attribute__ \( \( (?:__)?aligned(?:__)? (\( [\w ()+*]+ \)) \) \)"
)
_DIRECTIVE = re.compile(r"#\s*(\w*)\s*(.*)", re.S)
_INCLUDE = re.compile(r"[<\"]([^>\"]*)[>\"]\s*$")
_DEFINE = re.compile(r"([^\W\d][\w$]*)(\()?")
_PRAGMA_OPERATOR = re.compile(r'_Pragma\s*\(\s*L?"(?:\\.|[^"\\])*"\s*\)')
_SHARED_ALIAS = re.compile(
  r"([^\W\d]\w*)\s+((?:(?:static|extern|volatile)\s+)*__shared__"
  r"(?:\s+(?:static|extern|volatile))*)\s*$"
)


def _executor_names():
  """Names that the device headers define for themselves."""
  names = set()
  for path in (pathlib.Path(__file__).parent / "native").glob("*.h"):
    names.update(re.findall(r"\b(?:ke|KE)_\w+", path.read_text()))
  return frozenset(names)


class Macros:
  """What the text's macros stand for, as far as it matters here."""

  def __init__(self):
    self.shared: dict[str, str] = {}  # for `__shared__`, with their text
    self.device: set[str] = set()  # hold `__device__` or its kind
    self.kernel: set[str] = set()  # hold `__global__`


_EXECUTOR_NAMES = _executor_names()
_RESERVED = re.compile(
  r"(?:__tsan_|__asan_|__ubsan_|__wrap_|ke_(?:launch|function|type|record|home|extern)_"
  r"|KE_|ke_device$|ke_execute$)"
)


def unsupported(what: str, line: int) -> CandidateError:
  """The error for something that a GPU could do."""
  return CandidateError(
    Status.COMPILE_ERROR, f"not supported on the CPU executor: {what}", line
  )


def check_name(name: str, line: int) -> None:
  """Refuses one identifier of the text.

  Raises:
    CandidateError: COMPILE_ERROR for what the CPU lacks, CONTRACT_VIOLATION
      for what belongs to the executor.
  """
  if name in _UNSUPPORTED_NAMES:
    raise unsupported(f"{_UNSUPPORTED_NAMES[name]} (`{name}`)", line)
  if _RESERVED.match(name) or name in _EXECUTOR_NAMES:
    raise CandidateError(
      Status.CONTRACT_VIOLATION,
      f"`{name[:60]}` is a name of the executor's own",
      line,
    )
  if _BUILTIN.match(name) and not _ALLOWED_BUILTIN.fullmatch(name):
    raise unsupported(f"the compiler's own function `{name[:60]}`", line)


def attribute(tokens: list[source.Token]) -> str | None:
  """What stands for `__attribute__((...))` (its tokens); None: refused."""
  text = " ".join(t.text for t in tokens)
  if _HARMLESS_ATTRIBUTE.fullmatch(text):
    return ""
  match = _ALIGNED_ATTRIBUTE.fullmatch(text)
  return f"__align__{match.group(1)}" if match else None


def _check_include(name, rest, line):
  match = _INCLUDE.match(rest)
  header = match.group(1).strip() if match else ""
  if name == "include" and header in HEADERS:
    return
  for prefix, what in _UNSUPPORTED_HEADERS.items():
    if header.startswith(prefix):
      raise unsupported(f"{what} (<{header[:60]}>)", line)
  raise CandidateError(
    Status.COMPILE_ERROR,
    f"no header {rest.strip()[:60]} for device code; there are "
    f"{', '.join(sorted(HEADERS))}",
    line,
  )


def directive(text: str, line: int, macros: Macros) -> str | None:
  """What becomes of a preprocessor line.

  Args:
    text: the line, from `#` on, continuation lines joined.
    line: its number.
    macros: gets what the line defines.

  Returns:
    Its replacement, or None if it stays as it is.

  Raises:
    CandidateError: it is refused.
  """
  tokens = source.code(" " + text[1:])  # as code: `#` is not the first mark
  bare = "#" + " ".join(t.text for t in tokens)
  match = _DIRECTIVE.match(bare)
  name, rest = match.group(1), match.group(2)
  if name in ("include", "include_next", "import", "embed"):
    # Not `bare`: the tokens of <a/b.h> are not its characters.
    raw = re.sub(r"/\*.*?(?:\*/|\Z)|//.*", " ", text, flags=re.S)
    _check_include(name, re.sub(r"#\s*\w+\s*", "", raw, count=1), line)
    return ""
  if name == "pragma":
    # pack changes the layout of structures. unroll and its kind change nothing
    # here, and the rest is not CUDA.
    return None if rest.startswith("pack") else ""
  if name not in (
    *("define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif"),
    *("error", "warning"),
  ):
    return ""  # `#line`, `#ident`, and `#` alone
  if name in ("error", "warning"):
    return None
  for token in tokens:
    if token.kind == "name" and token.text not in ("define", "undef"):
      check_name(token.text, line)
  if name in ("define", "undef"):
    macro = _DEFINE.match(rest)
    if macro and macro.group(1) in _KEYWORDS:
      raise CandidateError(
        Status.CONTRACT_VIOLATION,
        f"a macro named `{macro.group(1)}` changes the language",
        line,
      )
    if name == "define" and any(t.text == "__shared__" for t in tokens):
      alias = _SHARED_ALIAS.match(rest)
      if not alias:
        raise unsupported("a `__shared__` declaration inside of a macro", line)
      macros.shared[alias.group(1)] = alias.group(2)
    elif macro and any(t.text in declarations.DEVICE_WORDS for t in tokens):
      macros.device.add(macro.group(1))
      if any(t.text == "__global__" for t in tokens):
        macros.kernel.add(macro.group(1))
  if "_Pragma" in text:
    return _PRAGMA_OPERATOR.sub("", text)
  return None
