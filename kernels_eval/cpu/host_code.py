"""Host code that device code uses.

`__device__` is an empty word for g++, so that it would compile a kernel that
calls a helper without it, or that reads a table of the host. A device compiler
refuses both. What has no `__device__` and has a name that occurs in device code
is marked as deprecated, and g++ then says whether it is really that which is
used, and where.
"""

import re

from kernels_eval import source
from kernels_eval.cpu import host, outcome
from kernels_eval.cpu.declarations import Declaration
from kernels_eval.schema import Diagnostic, Status

_WARNING = re.compile(
  r"kernel\.cu:(\d+):(\d+): warning: .* is deprecated: KE_(HOST|KERNEL) (\w+)"
)


def marks(
  declarations: list[Declaration], tokens: list[source.Token]
) -> list[tuple[int, str]]:
  """(token index, text to put in front of it) for what is to be marked."""
  device = [d for d in declarations if d.kind == "function" and d.is_device]
  used = {
    t.text for d in device for t in tokens[d.first : d.end] if t.kind == "name"
  }
  called = {
    tokens[i].text
    for d in device
    for i in range(d.first + 1, d.end - 1)
    if tokens[i].kind == "name"
    and tokens[i + 1].text in ("(", "<")
    and tokens[i - 1].text not in ("void", ")")
  }
  places = []
  for d in declarations:
    what = None
    if "__global__" in d.words:
      what = "KERNEL" if d.names and d.names[0] in called else None
    # A constexpr function may be used where its value is a constant.
    elif not d.is_device and not (
      d.kind == "function" and "constexpr" in d.words
    ):
      what = "HOST" if used.intersection(d.names) else None
    if what:
      mark = f'[[deprecated("KE_{what} {d.names[0]}")]] '
      places.append((d.first, mark))
  return places


def check(
  answer: host.Answer, device_lines: tuple[tuple[int, int], ...]
) -> None:
  """Reads the warnings about what was marked.

  Args:
    answer: of the compiler, which has succeeded.
    device_lines: first and last line of each device function.

  Raises:
    Stop: COMPILE_ERROR at the line of the use, or because there are so many
      warnings that those of ours may be missing.
  """
  if answer.total_log_bytes > host.MAX_LOG_BYTES:
    raise outcome.without_line(
      Status.COMPILE_ERROR,
      f"{answer.total_log_bytes} bytes of warnings; at most "
      f"{host.MAX_LOG_BYTES}",
    )
  for match in _WARNING.finditer(answer.log):
    line = int(match[1])
    if not any(first <= line <= last for first, last in device_lines):
      continue
    name = match[4]
    if match[3] == "KERNEL":
      text = f"`{name}` is a __global__ function; device code cannot call it"
    else:
      text = (
        f"`{name}` is host code, undefined in device code: declare it with "
        "__device__ (a table: __constant__)"
      )
    raise outcome.Stop(
      Status.COMPILE_ERROR,
      f"line {line}: {text}",
      diagnostics=(Diagnostic("error", text, line, int(match[2])),),
    )
