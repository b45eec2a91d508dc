"""CUDA C++ text to the unit that NVRTC compiles.

The text stays as it is, line for line; only `#include`s of host headers are
left out, whose names `include/ke_prelude.h` offers. A trailer checks that each
launched kernel takes the parameters that it will get.
"""

import re

from kernels_eval import source
from kernels_eval.candidate import Candidate
from kernels_eval.cpu import half_words, refusals, translate
from kernels_eval.cuda import needs
from kernels_eval.problems import spec

_INCLUDE = re.compile(r"#\s*include\s*[<\"]([^>\"]*)[>\"]")
_HALF_DTYPES = ("float16", "bfloat16")
_NVRTC_HEADERS = (
  "cuda_fp16.h",
  "cuda_fp16.hpp",
  "cuda_bf16.h",
  "cuda_bf16.hpp",
)


def _is_left_out(directive):
  match = _INCLUDE.match(directive)
  return (
    match is not None
    and match[1] in refusals.HEADERS
    and match[1] not in _NVRTC_HEADERS
  )


def _without_host_headers(program):
  parts, at = [], 0
  for token in source.code(program):
    if token.kind == "directive" and _is_left_out(token.text):
      parts += [
        program[at : token.start],
        "\n" * program[token.start : token.end].count("\n"),
      ]
      at = token.end
  return "".join([*parts, program[at:]])


def name_expression(launch) -> str:
  """What NVRTC calls the kernel of a launch."""
  return f"{launch.kernel}{launch.template}"


def _checks(index, launch, types):
  f = f"ke_function_{index}"
  of_f = f"ke_device::ke_parameters<{f}>"
  lines = [
    f"typedef decltype(&{name_expression(launch)}) {f};",
    f'static_assert({of_f}::ke_is_void, "KE_VOID {index}");',
    f'static_assert({of_f}::ke_count == {len(types)}, "KE_COUNT {index}");',
  ]
  for i, t in enumerate(types):
    parameter = f"ke_device::ke_parameter<{i}, {f}>"
    lines.append(
      f"static_assert(ke_device::ke_fits<{parameter}, {t}>::ke_value, "
      f'"KE_TYPE {index} {i}");'
    )
  return "\n".join(lines) + "\n"


def translate_unit(candidate: Candidate, problem: spec.Problem) -> str:
  """The whole unit: prelude, candidate, checks."""
  types = [
    [
      translate.parameter_type(a, problem, candidate.scratch)
      for a in launch.arguments
    ]
    for launch in translate.entries(candidate)
  ]
  tensors = (*problem.inputs, *problem.outputs, *candidate.scratch)
  has_half = any(t.dtype in _HALF_DTYPES for t in tensors) or (
    half_words.needed(candidate.source)
  )
  program = _without_host_headers(candidate.source)
  headers = ["ke_prelude.h"]
  if needs.limits(program):
    headers.append("ke_limits.h")
  if has_half:
    headers += ["cuda_fp16.h", "cuda_bf16.h"]
  parts = [f'#include "{header}"\n' for header in headers]
  parts.append(f'#line 1 "{translate.SOURCE_NAME}"\n')
  parts.append(program)
  parts.append(f'\n\n#line 1 "{translate.TRAILER_NAME}"\n')
  for index, launch in enumerate(translate.entries(candidate)):
    parts.append(_checks(index, launch, types[index]))
  return "".join(parts)
