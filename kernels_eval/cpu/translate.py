"""CUDA C++ text to C++ text that `native/device.h` understands.

Almost all of CUDA's words are macros there. What a macro cannot do is done
here, keeping every line where it is, so that diagnostics need no mapping:

  - `__shared__` declarations become a type, a record and a reference, so that
    the run-time checks know each variable's name, size and state;
  - `#include` lines vanish if device.h has what they offer, else are refused;
  - what the CPU cannot do is refused by name.

A trailer gives each launch a C entry point and checks parameter types.
"""

import re

from kernels_eval import dtypes, source
from kernels_eval.candidate import Candidate, CandidateError, Launch
from kernels_eval.problems import spec
from kernels_eval.schema import Status

SOURCE_NAME = "kernel.cu"
TRAILER_NAME = "launch"

_HEADERS = frozenset(
  """cuda_runtime.h cuda.h cuda_runtime_api.h device_launch_parameters.h
  device_functions.h vector_types.h vector_functions.h math.h cmath
  math_constants.h
  stdint.h cstdint float.h cfloat limits.h climits stddef.h cstddef stdio.h
  cstdio assert.h cassert string.h cstring cuda_fp16.h cuda_fp16.hpp cuda_bf16.h
  cuda_bf16.hpp sm_60_atomic_functions.h stdlib.h cstdlib""".split()
)
_UNSUPPORTED_HEADERS = {  # first part of the name: what it would bring
  "cooperative_groups": "cooperative groups",
  "mma": "tensor-core operations",
  "cuda/": "libcu++",
  "cub/": "CUB",
  "thrust/": "Thrust",
  "cutlass/": "CUTLASS",
  "curand": "cuRAND",
  "cuda_fp8": "8-bit floats",
  "cuda_pipeline": "asynchronous copies",
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
  "tex1D": "textures",
  "tex2D": "textures",
  "__attribute__": "GNU attributes",
  "__attribute": "GNU attributes",
}
_INCLUDE = re.compile(r"#\s*include\s*[<\"]([^>\"]*)[>\"]")


def _unsupported(what, line):
  return CandidateError(
    Status.COMPILE_ERROR, f"not supported on the CPU executor: {what}", line
  )


def _check_include(token, line):
  match = _INCLUDE.match(token.text)
  if not match:
    return False
  header = match.group(1).strip()
  if header in _HEADERS:
    return True
  for prefix, what in _UNSUPPORTED_HEADERS.items():
    if header.startswith(prefix):
      raise _unsupported(f"{what} (<{header}>)", line)
  raise CandidateError(
    Status.COMPILE_ERROR,
    f"no header <{header}> for device code; there are cuda_runtime.h, "
    "cuda_fp16.h, cuda_bf16.h, math.h, stdint.h, float.h, limits.h",
    line,
  )


class _Scopes:
  """Tells whether a place is inside of a function."""

  def __init__(self):
    self.stack = []

  def step(self, tokens, i):
    text = tokens[i].text
    if tokens[i].kind == "string":
      return
    if text == "{":
      self.stack.append(not self._is_namespace(tokens, i))
    elif text == "}" and self.stack:
      self.stack.pop()

  def _is_namespace(self, tokens, i):
    before = [t.text for t in tokens[max(0, i - 6) : i]]
    if before[-1:] and before[-1].startswith('"') and "extern" in before[-2:]:
      return True
    for text in reversed(before):
      if text == "namespace":
        return True
      if text in (";", "}", "{", ")"):
        return False
    return False

  @property
  def in_function(self):
    return any(self.stack)


_CLOSERS = {"(": ")", "[": "]", "{": "}"}


def _declaration_end(tokens, start):
  """Index of the `;` that ends the declaration, or None."""
  depth = 0
  for i in range(start, len(tokens)):
    text = tokens[i].text
    if tokens[i].kind == "string":
      continue
    depth += text in _CLOSERS
    depth -= text in _CLOSERS.values()
    if depth < 0:
      return None
    if text == ";" and depth == 0:
      return i
  return None


def _declarators(tokens, first, last):
  """Indices of the declared names in tokens[first:last]."""
  names, candidate, depth, angle, seen_suffix = [], None, 0, 0, False
  for i in range(first, last):
    token = tokens[i]
    if token.kind == "string":
      continue
    text = token.text
    if text in _CLOSERS:
      if text == "[" and depth == 0 and angle == 0:
        seen_suffix = True
      depth += 1
      continue
    if text in _CLOSERS.values():
      depth -= 1
      continue
    if depth:
      continue
    if text == "<" and candidate is not None and not seen_suffix:
      angle += 1
      continue
    if angle:
      angle -= {">": 1, ">>": 2}.get(text, 0)
      angle = max(angle, 0)
      continue
    if text == "=":
      return None
    if text == ",":
      names.append(candidate)
      candidate, seen_suffix = None, False
    elif token.kind == "name" and not seen_suffix:
      if text not in ("__align__", "alignas", "const", "volatile"):
        candidate = i
  names.append(candidate)
  return None if None in names else names


def _rewrite_shared(tokens, i, scopes, lines, edits):
  """Adds the edits for the declaration round the `__shared__` at i."""
  line = lines.at(tokens[i].start)
  first = i
  while first > 0 and tokens[first - 1].text not in (";", "{", "}", ":", ")"):
    if tokens[first - 1].kind == "directive":
      break
    first -= 1
  # `__align__(16) __shared__ ...`: step over the parentheses as well.
  if first > 1 and tokens[first - 1].text == ")":
    j = first - 1
    while j > 0 and tokens[j].text != "(":
      j -= 1
    if j > 0 and tokens[j - 1].text in ("__align__", "alignas"):
      first = j - 1
      while first > 0 and tokens[first - 1].text in ("extern", "static"):
        first -= 1
  end = _declaration_end(tokens, i)
  if end is None:
    raise CandidateError(
      Status.COMPILE_ERROR, "a `__shared__` declaration has no end", line
    )
  names = _declarators(tokens, i + 1, end)
  if names is None:
    raise CandidateError(
      Status.COMPILE_ERROR,
      "cannot read this `__shared__` declaration (an initialiser is not allowed"
      " for shared memory)",
      line,
    )
  is_dynamic = any(t.text == "extern" for t in tokens[first:end])
  edits.append((tokens[i], "typedef"))
  for token in tokens[first:end]:
    if token.text in ("extern", "static"):
      edits.append((token, ""))
  after = []
  for k in names:
    name = tokens[k].text
    edits.append((tokens[k], f"ke_type_{name}"))
    if is_dynamic:
      storage = "" if scopes.in_function else "static "
      after.append(
        f"{storage}ke_type_{name}& {name} = "
        f"*(ke_type_{name}*)ke_dynamic_shared();"
      )
    elif scopes.in_function:
      after.append(
        f"static ke_shared_variable ke_record_{name} = "
        f'KE_SHARED_RECORD(ke_type_{name}, "{name[:64]}", {line}); '
        f"auto& {name} = ke::shared<ke_type_{name}>(ke_record_{name});"
      )
    else:
      raise _unsupported("a `__shared__` variable outside of a function", line)
  edits.append((tokens[end], "; " + " ".join(after)))


def translate_source(program: str) -> str:
  """The candidate's text for g++, line for line.

  Raises:
    CandidateError: COMPILE_ERROR for what the CPU executor cannot do.
  """
  tokens = source.code(program)
  lines = source.Lines(program)
  edits = []  # (token, replacement)
  scopes = _Scopes()
  for i, token in enumerate(tokens):
    line = lines.at(token.start)
    if token.kind == "directive":
      if _check_include(token, line):
        edits.append((token, ""))
      continue
    if token.kind == "name":
      if token.text in _UNSUPPORTED_NAMES:
        raise _unsupported(
          f"{_UNSUPPORTED_NAMES[token.text]} (`{token.text}`)", line
        )
      if token.text == "__shared__":
        _rewrite_shared(tokens, i, scopes, lines, edits)
    scopes.step(tokens, i)
  parts, position = [], 0
  for token, replacement in sorted(edits, key=lambda e: e[0].start):
    parts.append(program[position : token.start])
    # A replaced token may span lines (a continued directive).
    parts.append(replacement + "\n" * token.text.count("\n"))
    position = token.start + len(token.text)
  parts.append(program[position:])
  return "".join(parts)


def parameter_type(name: str, problem: spec.Problem, scratch) -> str:
  """The C++ type that a launch passes for a parameter."""
  for tensor in (*problem.inputs, *problem.outputs, *scratch):
    if tensor.name == name:
      return f"{dtypes.DTYPES[tensor.dtype].cuda}*"
  if any(s.name == name for s in problem.scalars):
    return "float"
  return "int"


def _entry(index: int, launch: Launch, types: list[str]) -> str:
  function = f"{launch.kernel}{launch.template}"
  f = f"ke_function_{index}"
  checks = "".join(
    f"static_assert(ke::fits<ke::parameter<{i}, {f}>, {t}>::value, "
    f'"KE_TYPE {index} {i}");'
    for i, t in enumerate(types)
  )
  values = ", ".join(
    f"ke::argument<ke::parameter<{i}, {f}>>(a[{i}])" for i in range(len(types))
  )
  return (
    f"typedef decltype(&{function}) {f};\n"
    f"static_assert(ke::parameters<{f}>::count == {len(types)}, "
    f'"KE_COUNT {index}");\n'
    f"{checks}\n"
    f"KE_ENTRY void ke_launch_{index}(void** a) {{ (void)a; {function}("
    f"{values}); }}\n"
  )


def entries(candidate: Candidate) -> list[Launch]:
  """One launch for each distinct way in which a kernel is called."""
  distinct = {}
  for launch in candidate.launches:
    key = (launch.kernel, launch.template, launch.arguments)
    distinct.setdefault(key, launch)
  return list(distinct.values())


def translate(candidate: Candidate, problem: spec.Problem) -> str:
  """The whole translation unit: candidate, then entry points."""
  parts = [
    translate_source(candidate.source),
    f'\n#line 1 "{TRAILER_NAME}"\n',
  ]
  for index, launch in enumerate(entries(candidate)):
    types = [
      parameter_type(a, problem, candidate.scratch) for a in launch.arguments
    ]
    parts.append(_entry(index, launch, types))
  return "".join(parts)
