"""From an answer's text to a candidate: source, launch plan, scratch buffers.

The launch plan stands in comment lines of the source:

    // launch: KERNEL[<TEMPLATE ARGUMENTS>] grid=(E[, E[, E]])
    //         block=(E[, E[, E]]) [smem=E] [args=(NAME, ...)]    (one line)
    // scratch: NAME DTYPE (E[, E ...])

`E` is an expression over the problem's dimensions (`expressions.py`). Launches
run in the order of their lines. Without any, the problem's default plan runs
the only kernel of the source. `args` names inputs, outputs, scratch buffers,
scalars and dimensions; without it a kernel takes the problem's parameters in
their order. Scratch buffers hold NaN bytes until a kernel writes to them.
"""

import dataclasses
import difflib
import re

from kernels_eval import dtypes, expressions, source
from kernels_eval.problems import spec
from kernels_eval.schema import Status

MAX_SOURCE_BYTES = 256 * 1024
MAX_LAUNCHES = 16
MAX_SCRATCH = 8

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^\n]*$", re.M)
_LINE = re.compile(r"//\s*(launch|scratch)\s*:\s*(.*?)\s*$", re.S | re.I)
_LAUNCH = re.compile(r"([A-Za-z_]\w*)\s*(<[^=]*?>)?\s*(.*)$", re.S | re.A)
_SCRATCH = re.compile(r"([A-Za-z_]\w*)\s+(\w+)\s*\((.*)\)$", re.S | re.A)
# Words of the host API. Device code never needs them.
_HOST_WORDS = re.compile(
  r"cuda(?:Malloc|Memcpy|Memset|Free|Launch|Device|Stream|Event|Func|Get|Set"
  r"|Host|Graph|Module)\w*$|cu(?:Mem|Module|Launch|Ctx|Stream|Init)\w*$|main$"
)


class CandidateError(Exception):
  """The text is no acceptable candidate; `status` says in which way."""

  def __init__(self, status: Status, message: str, line: int | None = None):
    super().__init__(message)
    self.status = status
    self.message = message
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


@dataclasses.dataclass(frozen=True)
class Candidate:
  """Source text with its plan."""

  source: str
  launches: tuple[Launch, ...]
  scratch: tuple[spec.Tensor, ...]


def extract(text: str) -> str:
  """The source inside of an answer.

  The last closed ``` block with a `__global__` function wins; a text without
  fences is source itself.

  Raises:
    CandidateError: NO_KERNEL.
  """
  text = text.replace("\r\n", "\n").replace("\r", "\n")
  fences = list(_FENCE.finditer(text))
  if not fences:
    if "__global__" in text:
      return text
    raise CandidateError(
      Status.NO_KERNEL, "no code block and no `__global__` function"
    )
  blocks, opened = [], None
  for fence in fences:
    if opened is None:
      opened = fence
    elif fence.group(1).startswith(opened.group(1)) and not fence.group(2):
      blocks.append(text[opened.end() + 1 : fence.start()])
      opened = None
  with_kernel = [block for block in blocks if "__global__" in block]
  if with_kernel:
    return with_kernel[-1]
  if opened is not None and "__global__" in text[opened.end() :]:
    raise CandidateError(
      Status.NO_KERNEL, "the code block is not closed: the answer was cut off"
    )
  raise CandidateError(
    Status.NO_KERNEL, "no code block holds a `__global__` function"
  )


def kernel_names(tokens: list[source.Token]) -> list[str]:
  """Names of the `__global__` functions, in order, each once."""
  names = []
  for i, token in enumerate(tokens):
    if token.text != "__global__":
      continue
    # The name is what stands before the parameter list; attributes such as
    # __launch_bounds__(256) have parentheses of their own.
    j = i + 1
    while j < len(tokens) and tokens[j].text not in (";", "{"):
      following = tokens[j + 1].text if j + 1 < len(tokens) else ""
      if tokens[j].kind == "name" and following == "(":
        if not tokens[j].text.startswith("__"):
          if tokens[j].text not in names:
            names.append(tokens[j].text)
          break
        j = _skip_parentheses(tokens, j + 1)
        continue
      j += 1
  return names


def _skip_parentheses(tokens, opening):
  depth = 0
  for j in range(opening, len(tokens)):
    depth += tokens[j].text == "("
    depth -= tokens[j].text == ")"
    if depth == 0:
      return j + 1
  return len(tokens)


def _refuse_host_code(tokens, lines):
  for i, token in enumerate(tokens):
    if token.text == "<<<":
      raise CandidateError(
        Status.CONTRACT_VIOLATION,
        "host code: `<<<...>>>` launches a kernel; write a `// launch:` line",
        lines.at(token.start),
      )
    if token.kind == "name" and _HOST_WORDS.match(token.text):
      called = i + 1 < len(tokens) and tokens[i + 1].text == "("
      if called:
        raise CandidateError(
          Status.CONTRACT_VIOLATION,
          f"host code: `{token.text}` is not device code; give kernels and "
          "`// launch:` lines only",
          lines.at(token.start),
        )


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


def _options(text, line):
  """`grid=(..) block=(..) smem=..` as a dictionary of texts."""
  options, position = {}, 0
  pattern = re.compile(r"\s*(\w+)\s*=\s*")
  while position < len(text):
    match = pattern.match(text, position)
    if not match:
      raise CandidateError(
        Status.CONTRACT_VIOLATION,
        f"launch plan: cannot read `{text[position:].strip()[:40]}`; expected "
        "grid=(...) block=(...) smem=... args=(...)",
        line,
      )
    start = end = match.end()
    depth = 0
    while end < len(text):
      if depth == 0 and pattern.match(text, end) and end > start:
        break
      depth += text[end] == "("
      depth -= text[end] == ")"
      end += 1
    key = match.group(1).lower()
    if key not in ("grid", "block", "smem", "args"):
      near = difflib.get_close_matches(
        key, ("grid", "block", "smem", "args"), n=1
      )
      hint = f" (did you mean `{near[0]}`?)" if near else ""
      raise CandidateError(
        Status.CONTRACT_VIOLATION,
        f"launch plan: no option `{key}`{hint}; there are grid, block, smem, "
        "args",
        line,
      )
    if key in options:
      raise CandidateError(
        Status.CONTRACT_VIOLATION, f"launch plan: `{key}` given twice", line
      )
    options[key] = text[start:end].strip().rstrip(",")
    position = end
  return options


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


def _triple(text, what, line):
  parts = _split(_inside(text))
  if not 1 <= len(parts) <= 3:
    raise CandidateError(
      Status.CONTRACT_VIOLATION,
      f"launch plan: {what} has {len(parts)} values; it takes 1 to 3",
      line,
    )
  nodes = [_expression(part, what, line) for part in parts]
  return tuple(nodes + [expressions.Node("number", (1,))] * (3 - len(nodes)))


def _expression(text, what, line):
  try:
    return expressions.parse(text)
  except expressions.ExpressionError as error:
    raise CandidateError(
      Status.CONTRACT_VIOLATION, f"launch plan: {what}: {error}", line
    ) from None


def _parse_launch(text, problem, scratch, line):
  match = _LAUNCH.match(text)
  if not match:
    raise CandidateError(
      Status.CONTRACT_VIOLATION,
      f"launch plan: cannot read `{text[:60]}`; expected `KERNEL grid=(...) "
      "block=(...)`",
      line,
    )
  kernel, template, rest = match.group(1), match.group(2) or "", match.group(3)
  if template and not re.fullmatch(r"<[\w\s,:+*/%()-]*>", template, re.A):
    raise CandidateError(
      Status.CONTRACT_VIOLATION,
      f"launch plan: template arguments {template[:40]} may hold names and "
      "numbers only",
      line,
    )
  options = _options(rest, line)
  for key in ("grid", "block"):
    if key not in options:
      raise CandidateError(
        Status.CONTRACT_VIOLATION, f"launch plan: no {key}=(...)", line
      )
  parameters = parameter_names(problem)
  if "args" in options:
    inner = _inside(options["args"])
    names = [part.strip() for part in _split(inner)] if inner.strip() else []
    known = [*parameters, *(t.name for t in scratch)]
    for name in names:
      if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" (did you mean `{near[0]}`?)" if near else ""
        raise CandidateError(
          Status.CONTRACT_VIOLATION,
          f"launch plan: no argument `{name[:40]}`{hint}; there are "
          f"{', '.join(known)}",
          line,
        )
    if len(names) > 48:
      raise CandidateError(
        Status.CONTRACT_VIOLATION, "launch plan: more than 48 arguments", line
      )
    arguments = tuple(names)
  else:
    arguments = parameters
  return Launch(
    kernel,
    template,
    arguments,
    _triple(options["grid"], "grid", line),
    _triple(options["block"], "block", line),
    _expression(_inside(options.get("smem", "0")), "smem", line),
    line,
  )


def _parse_scratch(text, problem, line):
  match = _SCRATCH.match(text)
  if not match:
    raise CandidateError(
      Status.CONTRACT_VIOLATION,
      f"scratch: cannot read `{text[:60]}`; expected `NAME DTYPE (SIZE, ...)`",
      line,
    )
  name, dtype, shape = match.groups()
  if dtype not in dtypes.DTYPES:
    near = difflib.get_close_matches(dtype, dtypes.DTYPES, n=1)
    hint = f" (did you mean `{near[0]}`?)" if near else ""
    raise CandidateError(
      Status.CONTRACT_VIOLATION,
      f"scratch: no dtype `{dtype}`{hint}; there are "
      f"{', '.join(dtypes.DTYPES)}",
      line,
    )
  if name in parameter_names(problem):
    raise CandidateError(
      Status.CONTRACT_VIOLATION,
      f"scratch: `{name}` is a parameter of the problem already",
      line,
    )
  parts = [part.strip() for part in _split(shape)]
  for part in parts:
    _expression(part, "scratch", line)
  return spec.Tensor(name, tuple(parts), dtype)


def parameter_names(problem: spec.Problem) -> tuple[str, ...]:
  """Kernel parameters in the order of the signature."""
  return (
    *(t.name for t in problem.inputs),
    *(t.name for t in problem.outputs),
    *(s.name for s in problem.scalars),
    *problem.dims,
  )


def parse(text: str, problem: spec.Problem) -> Candidate:
  """Reads one answer for one problem.

  Raises:
    CandidateError: NO_KERNEL or CONTRACT_VIOLATION, with one line of reason
      and, where there is one, the line of the source.
  """
  if len(text.encode("utf-8", "replace")) > MAX_SOURCE_BYTES:
    raise CandidateError(
      Status.CONTRACT_VIOLATION,
      f"the text has {len(text.encode('utf-8', 'replace'))} bytes; at most "
      f"{MAX_SOURCE_BYTES}",
    )
  if "\0" in text:
    raise CandidateError(
      Status.CONTRACT_VIOLATION, "the text holds a NUL character"
    )
  program = extract(text)
  every = list(source.tokens(program))
  tokens = [t for t in every if t.kind != "comment"]
  lines = source.Lines(program)
  names = kernel_names(tokens)
  if not names:
    raise CandidateError(
      Status.NO_KERNEL, "the code holds no `__global__` function"
    )
  _refuse_host_code(tokens, lines)

  launch_lines, scratch = [], []
  for token in every:
    match = _LINE.match(token.text) if token.kind == "comment" else None
    if not match:
      continue
    line = lines.at(token.start)
    if match.group(1).lower() == "launch":
      launch_lines.append((match.group(2), line))
    else:
      scratch.append(_parse_scratch(match.group(2), problem, line))
  if len(launch_lines) > MAX_LAUNCHES or len(scratch) > MAX_SCRATCH:
    raise CandidateError(
      Status.CONTRACT_VIOLATION,
      f"{len(launch_lines)} launches and {len(scratch)} scratch buffers; at "
      f"most {MAX_LAUNCHES} and {MAX_SCRATCH}",
    )
  if launch_lines:
    launches = [
      _parse_launch(text, problem, scratch, line) for text, line in launch_lines
    ]
  elif len(names) == 1:
    default = _parse_launch(f"{names[0]} {problem.launch}", problem, (), None)
    launches = [default]
  else:
    raise CandidateError(
      Status.CONTRACT_VIOLATION,
      f"{len(names)} kernels ({', '.join(names[:6])}) and no `// launch:` line "
      "that says which to run",
    )
  for launch in launches:
    if launch.kernel not in names:
      near = difflib.get_close_matches(launch.kernel, names, n=1)
      hint = f" (did you mean `{near[0]}`?)" if near else ""
      raise CandidateError(
        Status.CONTRACT_VIOLATION,
        f"launch plan: no kernel `{launch.kernel}`{hint}; there are "
        f"{', '.join(names[:6])}",
        launch.line,
      )
  return Candidate(program, tuple(launches), tuple(scratch))
