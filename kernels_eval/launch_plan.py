"""Launch plans: comment lines that say which kernels run, how and on what.

    // launch: KERNEL[<TEMPLATE ARGUMENTS>] grid=(E[, E[, E]])
    //         block=(E[, E[, E]]) [smem=E] [args=(NAME, ...)]    (one line)
    // scratch: NAME DTYPE (E[, E ...])

`E` is an expression over the problem's dimensions (`expressions.py`). Launches
run in the order of their lines. `args` names inputs, outputs, scratch buffers,
scalars and dimensions; without it a kernel takes the problem's parameters in
their order. A comment that only begins like a plan (`// launch: one thread per
element`, `// Scratch: none`) is a comment. Scratch buffers hold NaN bytes until
a kernel writes to them.
"""

import dataclasses
import difflib
import re
from collections.abc import Collection, Sequence
from typing import NoReturn

from kernels_eval import dtypes, expressions, source
from kernels_eval.problems import spec
from kernels_eval.schema import Status

MAX_LAUNCHES = 16
MAX_SCRATCH = 8
MAX_LINE_CHARS = 2000
MAX_ARGUMENTS = 48

_LINE = re.compile(r"//\s*(launch|scratch)\s*:", re.I)
_WHOLE_LAUNCH = re.compile(
  r"((?:\w+::)*\w+)\s*(?:<[^=]*?>)?\s+(?:grid|block|smem|args)\s*=",
  re.A | re.I,
)
_HAS_OPTION = re.compile(r"\b(?:grid|block)\s*=", re.A | re.I)
_SCRATCH_HEAD = re.compile(r"[A-Za-z_]\w*\s+(\w+)\s*(\(?)", re.A)
_LIKE_A_DTYPE = re.compile(
  r"u?(?:int|float|double|half|bfloat|bf|fp|char|bool|short|long)(?:\d\w*)?",
  re.A,
)
_LAUNCH = re.compile(
  r"((?:[A-Za-z_]\w*::)*[A-Za-z_]\w*)\s*(<[^=]*?>)?\s*(.*)$", re.S | re.A
)
_TEMPLATE = re.compile(r"<[\w\s,:+*/%()-]*>", re.A)
_SCRATCH = re.compile(r"([A-Za-z_]\w*)\s+(\w+)\s*\((.*)\)$", re.S | re.A)
_OPTION = re.compile(r"\s*(\w+)\s*=\s*")
_OPTIONS = ("grid", "block", "smem", "args")


class CandidateError(Exception):
  """The text is no acceptable candidate; `status` says in which way."""

  def __init__(self, status: Status, message: str, line: int | None = None):
    self.message = source.one_line(message)
    super().__init__(self.message)
    self.status = status
    self.line = line


@dataclasses.dataclass(frozen=True)
class Launch:
  """One launch of the plan; expressions are parsed, not yet evaluated."""

  kernel: str
  template: str  # "<256>" or ""
  arguments: tuple[str, ...]  # names of parameters
  grid: tuple[expressions.Node, ...]  # x, y, z
  block: tuple[expressions.Node, ...]
  shared: expressions.Node  # bytes of dynamic shared memory
  line: int | None  # of the candidate; None for the problem's default


def _refuse(message, line) -> NoReturn:
  raise CandidateError(Status.CONTRACT_VIOLATION, message, line)


def _did_you_mean(name, known):
  near = difflib.get_close_matches(name[:40], known, n=1)
  return f" (did you mean `{near[0]}`?)" if near else ""


def _split(text):
  """Splits at commas outside of parentheses."""
  parts, depth, start = [], 0, 0
  for i, c in enumerate(text):
    depth += c == "("
    depth -= c == ")"
    if c == "," and depth == 0:
      parts.append(text[start:i])
      start = i + 1
  return [*parts, text[start:]]


def _inside(text):
  """The text without one pair of parentheses round the whole."""
  text = text.strip()
  if text.startswith("(") and text.endswith(")"):
    depth = 0
    for i, c in enumerate(text):
      depth += c == "("
      depth -= c == ")"
      if depth == 0:
        return text[1:-1] if i == len(text) - 1 else text
  return text


def _options(text, line):
  """`grid=(..) block=(..) smem=..` as a dictionary of texts."""
  options, position = {}, 0
  while position < len(text):
    match = _OPTION.match(text, position)
    if not match:
      _refuse(
        f"launch plan: cannot read `{text[position:].strip()[:40]}`; expected "
        "grid=(...) block=(...) smem=... args=(...)",
        line,
      )
    start = end = match.end()
    depth = 0
    while end < len(text):
      if depth == 0 and end > start and _OPTION.match(text, end):
        break
      depth += text[end] == "("
      depth -= text[end] == ")"
      end += 1
    key = match.group(1).lower()
    if key not in _OPTIONS:
      _refuse(
        f"launch plan: no option `{key[:40]}`{_did_you_mean(key, _OPTIONS)}; "
        f"there are {', '.join(_OPTIONS)}",
        line,
      )
    if key in options:
      _refuse(f"launch plan: `{key}` given twice", line)
    options[key] = text[start:end].strip().rstrip(",")
    position = end
  return options


def _expression(text, what, line):
  try:
    return expressions.parse(text)
  except expressions.ExpressionError as error:
    _refuse(f"launch plan: {what}: {error}", line)


def _triple(text, what, line):
  parts = _split(_inside(text))
  if not 1 <= len(parts) <= 3:
    _refuse(
      f"launch plan: {what} has {len(parts)} values; it takes 1 to 3", line
    )
  nodes = [_expression(part, what, line) for part in parts]
  return tuple(nodes + [expressions.Node("number", (1,))] * (3 - len(nodes)))


def parameter_names(problem: spec.Problem) -> tuple[str, ...]:
  """Kernel parameters in the order of the signature."""
  return (
    *(t.name for t in problem.inputs),
    *(t.name for t in problem.outputs),
    *(s.name for s in problem.scalars),
    *problem.dims,
  )


def _arguments(text, problem, scratch, line):
  inner = _inside(text)
  names = [part.strip() for part in _split(inner)] if inner.strip() else []
  known = [*parameter_names(problem), *(t.name for t in scratch)]
  for name in names:
    if name not in known:
      _refuse(
        f"launch plan: no argument `{name[:40]}`{_did_you_mean(name, known)}; "
        f"there are {', '.join(known)}",
        line,
      )
  if len(names) > MAX_ARGUMENTS:
    _refuse(f"launch plan: more than {MAX_ARGUMENTS} arguments", line)
  return tuple(names)


def parse_launch(
  text: str,
  problem: spec.Problem,
  scratch: Sequence[spec.Tensor],
  line: int | None,
) -> Launch:
  """Reads what stands behind `// launch:`.

  Raises:
    CandidateError: CONTRACT_VIOLATION at the line.
  """
  match = _LAUNCH.match(text)
  if not match:
    _refuse(
      f"launch plan: cannot read `{text[:60]}`; expected `KERNEL grid=(...) "
      "block=(...)`",
      line,
    )
  kernel, template, rest = match.group(1), match.group(2) or "", match.group(3)
  if template and not _TEMPLATE.fullmatch(template):
    _refuse(
      f"launch plan: template arguments {template[:40]} may hold names and "
      "numbers only",
      line,
    )
  options = _options(rest, line)
  for key in ("grid", "block"):
    if key not in options:
      _refuse(f"launch plan: no {key}=(...)", line)
  arguments = parameter_names(problem)
  if "args" in options:
    arguments = _arguments(options["args"], problem, scratch, line)
  return Launch(
    kernel,
    template,
    arguments,
    _triple(options["grid"], "grid", line),
    _triple(options["block"], "block", line),
    _expression(_inside(options.get("smem", "0")), "smem", line),
    line,
  )


def _parse_scratch(text, problem, scratch, line):
  match = _SCRATCH.match(text)
  if not match:
    _refuse(
      f"scratch: cannot read `{text[:60]}`; expected `NAME DTYPE (SIZE, ...)`",
      line,
    )
  name, dtype, shape = match.groups()
  if dtype not in dtypes.DTYPES:
    _refuse(
      f"scratch: no dtype `{dtype[:40]}`{_did_you_mean(dtype, dtypes.DTYPES)}; "
      f"there are {', '.join(dtypes.DTYPES)}",
      line,
    )
  if name in parameter_names(problem):
    _refuse(f"scratch: `{name}` is a parameter of the problem already", line)
  if any(name == other.name for other in scratch):
    _refuse(f"scratch: `{name[:40]}` given twice", line)
  parts = [part.strip() for part in _split(shape)]
  for part in parts:
    _expression(part, "scratch", line)
  return spec.Tensor(name, tuple(parts), dtype)


def _is_launch(word, rest, kernels):
  """Whether `// launch: rest` is meant as a plan, and not as English."""
  if word == "launch":
    return not rest or rest in kernels or bool(_HAS_OPTION.search(rest))
  match = _WHOLE_LAUNCH.match(rest)
  return match is not None and match.group(1) in kernels


def _is_scratch(word, rest):
  match = _SCRATCH_HEAD.match(rest)
  if match is None:
    return False
  if match.group(1) in dtypes.DTYPES:
    return word == "scratch" or bool(match.group(2))
  return bool(match.group(2)) and (
    _LIKE_A_DTYPE.fullmatch(match.group(1)) is not None
  )


def read(
  comments: Sequence[tuple[str, int]],
  problem: spec.Problem,
  kernels: Collection[str],
) -> tuple[list[Launch], list[spec.Tensor]]:
  """The plan that stands in a text's comments.

  Args:
    comments: text and line of each comment.
    problem: whose parameters and dimensions the plan may name.
    kernels: names of the text's kernels.

  Returns:
    Launches in their order, and scratch buffers.

  Raises:
    CandidateError: CONTRACT_VIOLATION at the line.
  """
  launch_lines, scratch_lines = [], []
  for text, line in comments:
    match = _LINE.match(text)
    if not match:
      continue
    word, rest = match.group(1), text[match.end() :].strip()
    is_launch = word.lower() == "launch"
    if not (
      _is_launch(word, rest, kernels) if is_launch else _is_scratch(word, rest)
    ):
      continue
    if len(rest) > MAX_LINE_CHARS:
      _refuse(
        f"launch plan: a line of {len(rest)} characters; at most "
        f"{MAX_LINE_CHARS}",
        line,
      )
    (launch_lines if is_launch else scratch_lines).append((rest, line))
  if len(launch_lines) > MAX_LAUNCHES or len(scratch_lines) > MAX_SCRATCH:
    _refuse(
      f"{len(launch_lines)} launches and {len(scratch_lines)} scratch buffers; "
      f"at most {MAX_LAUNCHES} and {MAX_SCRATCH}",
      None,
    )
  scratch = []
  for text, line in scratch_lines:
    scratch.append(_parse_scratch(text, problem, scratch, line))
  launches = [
    parse_launch(text, problem, scratch, line) for text, line in launch_lines
  ]
  return launches, scratch
