"""Tokens of CUDA C++ text, with their places. No grammar, no preprocessor.

Enough to tell code from comments and strings, which every check on a
candidate's text needs: a regular expression over the raw text calls a comment
a cheat and a string a launch.
"""

import bisect
import re
from collections.abc import Iterator
from typing import NamedTuple


class Token(NamedTuple):
  """`kind`: comment, string, name, number, directive or mark."""

  kind: str
  text: str
  start: int  # character offset


_TOKEN = re.compile(
  r"""
  (?P<space>[\s\\]+)
  | (?P<comment>//[^\n]*(?:\\\n[^\n]*)*|/\*.*?(?:\*/|\Z))
  | (?P<string>
      (?:u8|[uUL])?R"(?P<mark_>[^()\\\s]{0,16})\(.*?(?:\)(?P=mark_)"|\Z)
      |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*(?:"|(?=\n)|\Z)
      |(?:u8|[uUL])?'(?:\\.|[^'\\\n])*(?:'|(?=\n)|\Z))
  | (?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)
  | (?P<name>[A-Za-z_$]\w*)
  | (?P<mark><<<|>>>|::|->|\+\+|--|<<=|>>=|<<|>>|[<>=!+\-*/%&|^]=|&&|\|\||.)
  """,
  re.VERBOSE | re.DOTALL | re.ASCII,
)
_DIRECTIVE = re.compile(r"\#(?:[^\n\\]|\\.)*", re.DOTALL)


def tokens(text: str) -> Iterator[Token]:
  """Yields every token but white space, in order.

  Never raises: what is no token of the language is a `mark` of one character,
  an unfinished string or comment ends where the text does.
  """
  position, line_has_code = 0, False
  while position < len(text):
    if text[position] == "#" and not line_has_code:
      match = _DIRECTIVE.match(text, position)
      yield Token("directive", match.group(), position)
      position = match.end()
      continue
    match = _TOKEN.match(text, position)
    if match is None:  # e.g. a character that only non-ASCII rules would take
      yield Token("mark", text[position], position)
      position += 1
      continue
    kind = match.lastgroup
    if kind == "mark_":
      kind = "string"
    if kind == "space":
      if "\n" in match.group():
        line_has_code = False
    else:
      if kind != "comment":
        line_has_code = True
      elif "\n" in match.group():
        line_has_code = False
      yield Token(kind, match.group(), position)
    position = match.end()


def code(text: str) -> list[Token]:
  """The tokens without comments."""
  return [t for t in tokens(text) if t.kind != "comment"]


class Lines:
  """Line numbers (1-based) of character offsets in one text."""

  def __init__(self, text: str):
    self._starts = [0] + [m.end() for m in re.finditer("\n", text)]

  def at(self, offset: int) -> int:
    """The line that holds the character."""
    return bisect.bisect_right(self._starts, offset)
