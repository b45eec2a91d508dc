"""From an answer's text to a candidate: source, launch plan, scratch buffers.

A candidate is CUDA C++, or a Numba-CUDA module: Python text with `@cuda.jit`
and without `__global__`. The plan stands in comment lines (`launch_plan.py`).
Without any, the problem's default plan runs the only kernel of the source.
"""

import bisect
import dataclasses
import difflib
import re

from kernels_eval import launch_plan, source
from kernels_eval.launch_plan import CandidateError, Launch
from kernels_eval.numba import text as numba_text
from kernels_eval.problems import spec
from kernels_eval.schema import Status

MAX_SOURCE_BYTES = 256 * 1024
MAX_KERNELS = 64

# Of backticks only: a line of ~~~ is as often an underline in a comment.
_FENCE = re.compile(r"^[ \t]*(`{3,})[ \t]*([\w+#.-]*)[^\n]*$", re.M)
# Words of the host API. Device code never needs them.
_HOST_WORDS = re.compile(
  r"cuda(?:Malloc|Memcpy|Memset|Free|Launch|Device|Stream|Event|Func|Get|Set"
  r"|Host|Graph|Module)\w*$|cu(?:Mem|Module|Launch|Ctx|Stream|Init)\w*$|main$"
)
_DEFINE = re.compile(r"#\s*define\s+(\w+)(?!\()\b(.*)", re.S)
_NAME = re.compile(r"\w+")
_MAX_HEAD = 200  # tokens between `__global__` and the kernel's name
CUDA, NUMBA = "cuda", "numba"
_PYTHON_TAGS = ("python", "python3", "py", "numba", "")


@dataclasses.dataclass(frozen=True)
class Candidate:
  """Source text with its plan."""

  source: str
  launches: tuple[Launch, ...]
  scratch: tuple[spec.Tensor, ...]
  language: str = CUDA


def _holds_kernel(program, tag=""):
  if "__global__" in program:
    return True
  return tag.lower() in _PYTHON_TAGS and numba_text.is_numba(program)


def extract(text: str) -> str:
  """The source inside of an answer.

  The last closed ``` block with a kernel (a `__global__` function, or one under
  `@cuda.jit`) wins. A text without fences is source itself, and so is one whose
  fences stand in its comments.

  Raises:
    CandidateError: NO_KERNEL.
  """
  text = text.replace("\r\n", "\n").replace("\r", "\n")
  text = text.removeprefix("\ufeff")  # a byte order mark
  fences = list(_FENCE.finditer(text))
  if fences and _are_comments(fences, text):
    return text
  if not fences:
    if _holds_kernel(text):
      return text
    raise CandidateError(
      Status.NO_KERNEL,
      "no code block and no `__global__` or `@cuda.jit` function",
    )
  blocks, opened = [], None
  for fence in fences:
    if opened is None:
      opened = fence
    elif fence.group(1).startswith(opened.group(1)) and not fence.group(2):
      blocks.append((text[opened.end() + 1 : fence.start()], opened.group(2)))
      opened = None
  with_kernel = [block for block, tag in blocks if _holds_kernel(block, tag)]
  if with_kernel:
    return with_kernel[-1]
  if opened is not None and _holds_kernel(text[opened.end() :]):
    raise CandidateError(
      Status.NO_KERNEL, "the code block is not closed: the answer was cut off"
    )
  raise CandidateError(
    Status.NO_KERNEL,
    "no code block holds a `__global__` or `@cuda.jit` function",
  )


def _are_comments(fences, text):
  """Whether the text is a program and its fences stand in comments."""
  if "/*" not in text:
    return False
  tokens = list(source.tokens(text))
  comments = [t for t in tokens if t.kind == "comment"]
  starts = [t.start for t in comments]
  for fence in fences:
    i = bisect.bisect_right(starts, fence.start()) - 1
    if i < 0 or fence.end() > comments[i].end:
      return False
  return bool(kernel_names([t for t in tokens if t.kind != "comment"]))


def global_words(tokens: list[source.Token]) -> set[str]:
  """`__global__`, and the text's macros that stand for it and more."""
  words = {"__global__"}
  for token in tokens:
    if token.kind == "directive":
      match = _DEFINE.match(token.text)
      if match and words.intersection(_NAME.findall(match.group(2))):
        words.add(match.group(1))
  return words


def kernel_names(tokens: list[source.Token]) -> dict[str, str]:
  """The `__global__` functions: name -> name with its namespaces.

  In their order. Of two with one name in different namespaces the first counts;
  each is also there with its namespaces (`a::k`).
  """
  names, words, scopes = {}, global_words(tokens), []
  for i, token in enumerate(tokens):
    if token.text == "{" and token.kind == "mark":
      scopes.append(_namespace(tokens, i))
    elif token.text == "}" and token.kind == "mark" and scopes:
      scopes.pop()
    if token.text not in words:
      continue
    # The name is what stands before the parameter list; attributes such as
    # __launch_bounds__(256) have parentheses of their own.
    j, last = i + 1, min(i + _MAX_HEAD, len(tokens))
    while j < last and tokens[j].text not in (";", "{"):
      following = tokens[j + 1].text if j + 1 < len(tokens) else ""
      if tokens[j].kind == "name" and following == "(":
        if not tokens[j].text.startswith("__"):
          path = "::".join([*filter(None, scopes), tokens[j].text])
          names.setdefault(tokens[j].text, path)
          names.setdefault(path, path)
          break
        j = _skip_parentheses(tokens, j + 1, last)
        continue
      j += 1
  return names


def _namespace(tokens, brace):
  """`a::b` if `namespace a::b` stands in front of the brace, else None."""
  i = brace
  while i > 0 and (tokens[i - 1].kind == "name" or tokens[i - 1].text == "::"):
    i -= 1
    if tokens[i].text == "namespace":
      return "".join(t.text for t in tokens[i + 1 : brace]) or None
  return None


def _skip_parentheses(tokens, opening, last):
  depth = 0
  for j in range(opening, last):
    depth += tokens[j].text == "("
    depth -= tokens[j].text == ")"
    if depth == 0:
      return j + 1
  return last


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
          f"host code: `{token.text[:60]}` is not device code; give kernels "
          "and `// launch:` lines only",
          lines.at(token.start),
        )


def check_size(text: str) -> None:
  """Refuses a text that is too long to be looked at.

  Raises:
    CandidateError: CONTRACT_VIOLATION.
  """
  size = len(text)
  if size <= MAX_SOURCE_BYTES:
    size = len(text.encode("utf-8", "replace"))
  if size > MAX_SOURCE_BYTES:
    raise CandidateError(
      Status.CONTRACT_VIOLATION,
      f"the text has {size} bytes; at most {MAX_SOURCE_BYTES}",
    )
  if "\0" in text:
    raise CandidateError(
      Status.CONTRACT_VIOLATION, "the text holds a NUL character"
    )


def _read_cuda(program):
  """Kernels (name: name with its namespaces) and comments (text, line) of CUDA
  C++."""
  every = list(source.tokens(program))
  tokens = [t for t in every if t.kind != "comment"]
  lines = source.Lines(program)
  names = kernel_names(tokens)
  if names:
    _refuse_host_code(tokens, lines)
  comments = [(t.text, lines.at(t.start)) for t in every if t.kind == "comment"]
  return names, comments


def _read_numba(program):
  """The same of a Numba-CUDA module; `#` stands for `//`."""
  tokens = list(numba_text.tokens(program))
  lines = source.Lines(program)
  comments = [
    ("//" + t.text[1:], lines.at(t.start))
    for t in tokens
    if t.kind == "comment"
  ]
  return {name: name for name in numba_text.kernel_names(tokens)}, comments


_READERS = {CUDA: _read_cuda, NUMBA: _read_numba}
_MARKS = {CUDA: ("__global__", "//"), NUMBA: ("@cuda.jit", "#")}


def parse(text: str, problem: spec.Problem) -> Candidate:
  """Reads one answer for one problem.

  Raises:
    CandidateError: NO_KERNEL or CONTRACT_VIOLATION, with one line of reason
      and, where there is one, the line of the source.
  """
  check_size(text)
  program = extract(text)
  language = NUMBA if numba_text.is_numba(program) else CUDA
  word, mark = _MARKS[language]
  paths, comments = _READERS[language](program)
  names = [name for name in paths if "::" not in name]
  if not names:
    raise CandidateError(
      Status.NO_KERNEL, f"the code holds no `{word}` function"
    )
  if len(names) > MAX_KERNELS:
    raise CandidateError(
      Status.CONTRACT_VIOLATION, f"{len(names)} kernels; at most {MAX_KERNELS}"
    )
  launches, scratch = launch_plan.read(comments, problem, paths)
  if not launches:
    if len(names) > 1:
      raise CandidateError(
        Status.CONTRACT_VIOLATION,
        f"{len(names)} kernels ({', '.join(names[:6])}) and no "
        f"`{mark} launch:` line that says which to run",
      )
    default = f"{names[0]} {problem.launch}"
    launches = [launch_plan.parse_launch(default, problem, (), None)]
  for launch in launches:
    if launch.kernel not in paths:
      near = difflib.get_close_matches(launch.kernel, names, n=1)
      hint = f" (did you mean `{near[0]}`?)" if near else ""
      raise CandidateError(
        Status.CONTRACT_VIOLATION,
        f"launch plan: no kernel `{launch.kernel[:60]}`{hint}; there are "
        f"{', '.join(names[:6])}",
        launch.line,
      )
    if language == NUMBA and launch.template:
      raise CandidateError(
        Status.CONTRACT_VIOLATION,
        f"launch plan: `{launch.kernel[:60]}{launch.template[:40]}`: a Numba "
        "kernel has no template arguments",
        launch.line,
      )
  launches = [
    dataclasses.replace(launch, kernel=paths[launch.kernel])
    for launch in launches
  ]
  return Candidate(program, tuple(launches), tuple(scratch), language)
