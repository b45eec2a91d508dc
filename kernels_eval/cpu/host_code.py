"""Host code that device code uses.

`__device__` is an empty word for g++, so that it would compile a kernel that
calls a helper without it, or that reads a table of the host. A device compiler
refuses both. What has no `__device__` and has a name that occurs in device code
is marked as deprecated (`KE_MARK`), and g++ then says whether it is really that
which is used, and where.
"""

import re

from kernels_eval import outcome, source
from kernels_eval.cpu import host
from kernels_eval.cpu.declarations import Declaration
from kernels_eval.schema import Diagnostic, Status

_WARNING = re.compile(
  r"kernel\.cu:(\d+):(\d+): warning: .* is deprecated: KE_(HOST|KERNEL) (\w+)"
)


def marks(
  declarations: list[Declaration],
  tokens: list[source.Token],
  macro_words: set[str],
  has_pasted_names: bool,
) -> list[tuple[int, str]]:
  """(token index, text to put in front of it) for what is to be marked.

  Args:
    declarations: of the text.
    tokens: that the declarations point into.
    macro_words: names in macros, which device code may use through them.
    has_pasted_names: whether macros put names together: any may be used.
  """
  device = [d for d in declarations if d.is_device]
  used = macro_words | {
    t.text for d in device for t in tokens[d.first : d.end] if t.kind == "name"
  }
  called = macro_words | {
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
      is_called = has_pasted_names or called.intersection(d.names[:1])
      what = "KERNEL" if d.names and is_called else None
    # A constexpr function may be used where its value is a constant.
    elif not d.is_device and not (
      d.kind == "function" and "constexpr" in d.words
    ):
      is_used = has_pasted_names or used.intersection(d.names)
      what = "HOST" if d.names and is_used else None
    if what:
      places.append((d.first, f'KE_MARK("KE_{what} {d.names[0]}") '))
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
