"""What compiler, assembler and linker have printed, as outcomes.

Line numbers are the candidate's own: `translate.py` keeps every line in its
place, and an error inside of our headers counts at the line that led there.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from kernels_eval import diagnostics as diagnostics_lib
from kernels_eval import outcome, source
from kernels_eval.candidate import Candidate
from kernels_eval.cpu import translate
from kernels_eval.launch_plan import Launch
from kernels_eval.problems import spec
from kernels_eval.schema import Diagnostic, Status

MAX_DIAGNOSTICS = 8
MAX_MESSAGE = 400

_MESSAGE = re.compile(
  r"(?P<file>[^:\n]+):(?:(?P<line>\d+):)?(?:(?P<column>\d+):)? "
  r"(?P<severity>fatal error|sorry, unimplemented|error|note|warning): "
  r"(?P<message>.*)"
)
# Printed in front of an error inside of a template.
_LED_HERE = re.compile(r"(?P<file>[^:\n]+):(?P<line>\d+):\d+:\s+required from ")
_MARKER = re.compile(r"KE_(COUNT|TYPE|VOID) (\d+)(?: (\d+))?$")
_UNDEFINED = re.compile(
  r"(?:kernel\.cu:(\d+): )?undefined reference to `([^']*)'"
)
# Names that translate.py has made up, as g++ prints them.
_OWN_TYPE = re.compile(r"'[^']*\bke_type_\w+' \{aka '([^']*)'\}")


class Messages(NamedTuple):
  """What the compiler has said."""

  diagnostics: tuple[Diagnostic, ...]  # errors and notes at the candidate
  markers: tuple[re.Match, ...]  # failed checks of our trailer
  trailer_error: str | None  # any other error there


def cut(text: str) -> str:
  """A message without names of our own, of bounded length."""
  text = _OWN_TYPE.sub(r"'\1'", text)
  text = re.sub(r"\bke_(?:type|extern)_", "", text)
  text = source.printable(text)
  return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"


def read(log: str) -> Messages:
  """Sorts a compiler's messages, each kept once, warnings left out."""
  found, markers = [], []
  trailer_error, led_here = None, None
  for text in log.splitlines():
    match = _LED_HERE.match(text)
    if match:
      if match["file"] == translate.SOURCE_NAME:
        led_here = int(match["line"])
      continue
    match = _MESSAGE.match(text)
    if not match or match["severity"] == "warning":
      continue
    is_error = match["severity"] != "note"
    line = int(match["line"]) if match["line"] else None
    column = int(match["column"]) if match["column"] else None
    if match["file"] == translate.TRAILER_NAME:
      marker = _MARKER.search(match["message"])
      if marker and is_error:
        markers.append(marker)
      elif is_error and trailer_error is None:
        trailer_error = cut(match["message"])
      continue
    if match["file"] != translate.SOURCE_NAME:
      if not is_error:
        continue
      line, column = led_here, None
    if is_error:
      led_here = None
    severity = "error" if is_error else "note"
    found.append(Diagnostic(severity, cut(match["message"]), line, column))
  return Messages(diagnostics_lib.merge(found), tuple(markers), trailer_error)


def compile_failure(
  messages: Messages,
  log: str,
  candidate: Candidate,
  problem: spec.Problem,
  launches: Sequence[Launch],
) -> outcome.Stop:
  """The outcome of a compilation that failed: what was read of the log, and
  the log itself."""
  errors = [d for d in messages.diagnostics if d.severity == "error"]
  for marker in messages.markers:
    # What does not fit makes our headers fail as well, at no line of the text.
    is_first = not any(d.line for d in errors)
    if int(marker[2]) < len(launches) and is_first:
      return _signature_failure(
        marker, launches[int(marker[2])], candidate, problem
      )
  if errors:
    place = f"line {errors[0].line}: " if errors[0].line else ""
    return outcome.Stop(
      Status.COMPILE_ERROR,
      place + errors[0].message,
      diagnostics=messages.diagnostics[:MAX_DIAGNOSTICS],
    )
  if messages.trailer_error is not None:
    text = messages.trailer_error
    if "at end of input" in text:  # a brace that the candidate left open
      return outcome.without_line(
        Status.COMPILE_ERROR, f"the text ends too early: {text}"
      )
    return outcome.Stop(
      Status.CONTRACT_VIOLATION,
      f"kernel `{launches[0].kernel}` cannot be launched: {text}",
    )
  if re.search(r"memory exhausted|out of memory", log):
    text = "the compiler ran out of memory on this text"
  else:
    lines = [x for x in log.splitlines() if x.strip()]
    text = cut(f"the compiler failed: {(lines or ['no message'])[-1]}")
  return outcome.without_line(Status.COMPILE_ERROR, text)


def _signature_failure(marker, launch, candidate, problem):
  types = [
    translate.parameter_type(a, problem, candidate.scratch)
    for a in launch.arguments
  ]
  wanted = ", ".join(
    f"{t} {a}" for t, a in zip(types, launch.arguments, strict=True)
  )
  if marker[1] == "VOID":
    return outcome.without_line(
      Status.COMPILE_ERROR,
      f"kernel `{launch.kernel}`: a __global__ function must return void",
    )
  if marker[1] == "COUNT":
    what = f"kernel `{launch.kernel}` must take {len(types)} parameters"
  else:
    i = int(marker[3])
    what = (
      f"kernel `{launch.kernel}`: parameter {i + 1} must be "
      f"`{types[i]} {launch.arguments[i]}`"
    )
  return outcome.without_line(
    Status.CONTRACT_VIOLATION, f"{what}; it is given ({wanted})"
  )


def link_failure(log: str) -> outcome.Stop:
  """The outcome of a link that failed."""
  match = _UNDEFINED.search(log)
  if match:
    name = match[2]
    line = int(match[1]) if match[1] else None
    text = f"`{name}` is not defined; a kernel cannot call the C library"
    if re.match(r"operator (new|delete)|malloc$|free$", name):
      text = (
        "not supported on the CPU executor: memory allocation in a kernel "
        f"(`{name}`)"
      )
    text = cut(text)
    return outcome.Stop(
      Status.COMPILE_ERROR,
      text if line is None else f"line {line}: {text}",
      diagnostics=(Diagnostic("error", text, line, None),),
    )
  lines = [x for x in log.splitlines() if x.strip()]
  return outcome.without_line(
    Status.COMPILE_ERROR,
    cut(f"the linker failed: {(lines or ['no message'])[-1]}"),
  )
