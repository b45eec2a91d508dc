"""Looks at Python text without running or parsing it.

Enough to tell comments from strings, and to find the kernels. The full check of
the module is made inside of the sandbox (`contract.py`): Python's own parser is
no program to feed hostile text to in the judge.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple


class Token(NamedTuple):
  """`kind`: comment, string, name, number, newline or mark."""

  kind: str
  text: str
  start: int


_TOKEN = re.compile(
  r"""
  (?P<space>[ \t\f\r]+|\\\n)
  | (?P<newline>\n)
  | (?P<comment>\#[^\n]*)
  | (?P<string>[rRbBuUfF]{0,2}(?:
      '''(?:\\.|[^\\])*?(?:'''|\Z)
      |\"\"\"(?:\\.|[^\\])*?(?:\"\"\"|\Z)
      |'(?:\\.|[^'\\\n])*(?:'|(?=\n)|\Z)
      |"(?:\\.|[^"\\\n])*(?:"|(?=\n)|\Z)))
  | (?P<name>[^\W\d]\w*)
  | (?P<number>\d[\w.]*)
  | (?P<mark>.)
  """,
  re.VERBOSE | re.DOTALL,
)
_JIT = re.compile(r"@[ \t]*(?:\w+[ \t]*\.[ \t]*)?cuda[ \t]*\.[ \t]*jit\b")


def is_numba(program: str) -> bool:
  """Whether the text is meant as a Numba-CUDA module."""
  return "__global__" not in program and _JIT.search(program) is not None


def tokens(program: str) -> Iterator[Token]:
  """Yields every token but white space, in order. Never raises."""
  for match in _TOKEN.finditer(program):
    if match.lastgroup != "space":
      yield Token(match.lastgroup, match.group(), match.start())


def kernel_names(program: list[Token]) -> list[str]:
  """Names of the functions under `@cuda.jit`, device functions left out."""
  names: dict[str, None] = {}
  is_kernel, position = False, 0
  while position < len(program):
    end = position
    depth = 0
    while end < len(program):
      kind, text, _ = program[end]
      if kind == "mark":
        depth += text in "([{"
        depth -= text in ")]}"
      end += 1
      if kind == "newline" and depth <= 0:
        break
    words = [t.text for t in program[position:end] if t.kind != "comment"]
    if words[:1] == ["@"]:
      if _holds(words, ["cuda", ".", "jit"]):
        is_kernel = not _holds(words, ["device", "=", "True"])
    elif words[:1] == ["def"] and len(words) > 1:
      if is_kernel:
        names.setdefault(words[1])
      is_kernel = False
    position = end
  return list(names)


def _holds(words, wanted):
  n = len(wanted)
  return any(words[i : i + n] == wanted for i in range(len(words) - n + 1))
