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
  """`kind`: comment, string, name, number, directive or mark.

  `text` is what a compiler reads: lines that end with a backslash are joined
  with the next. `start` and `end` are offsets in the original.
  """

  kind: str
  text: str
  start: int
  end: int


_TOKEN = re.compile(
  r"""
  (?P<space>\s+)
  | (?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
  | (?P<string>
      (?:u8|[uUL])?R"(?P<mark_>[^()\\\s]{0,16})\(.*?(?:\)(?P=mark_)"|\Z)
      |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*(?:"|(?=\n)|\Z)
      |(?:u8|[uUL])?'(?:\\.|[^'\\\n])*(?:'|(?=\n)|\Z))
  | (?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)
  | (?P<name>[A-Za-z_$\u0080-\U0010ffff][\w$\u0080-\U0010ffff]*)
  | (?P<mark><<<|>>>|::|->|\+\+|--|<<=|>>=|<<|>>|[<>=!+\-*/%&|^]=|&&|\|\||.)
  """,
  re.VERBOSE | re.DOTALL | re.ASCII,
)
# A line that starts with `#`; comments in it may span lines.
_DIRECTIVE = re.compile(
  r"""\#(?:/\*.*?(?:\*/|\Z)|//[^\n]*|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?
  |[^\n/"']|/)*""",
  re.DOTALL | re.VERBOSE,
)
_SPLICE = re.compile(r"\\[ \t\f\v]*\n")


class _Spliced:
  """The text with continued lines joined, and the way back."""

  def __init__(self, text):
    parts, position = [], 0
    self._places, self._shifts = [0], [0]  # from here on: add this
    length = 0
    for match in _SPLICE.finditer(text):
      parts.append(text[position : match.start()])
      length += match.start() - position
      position = match.end()
      self._places.append(length)
      self._shifts.append(position - length)
    self.text = "".join([*parts, text[position:]]) if parts else text

  def original(self, offset):
    i = bisect.bisect_right(self._places, offset) - 1
    return offset + self._shifts[i]


def tokens(text: str) -> Iterator[Token]:
  """Yields every token but white space, in order.

  Never raises: what is no token of the language is a `mark` of one character,
  an unfinished string or comment ends where the text does.
  """
  spliced = _Spliced(text)
  whole = spliced.text
  position, line_has_code = 0, False
  while position < len(whole):
    if whole[position] == "#" and not line_has_code:
      match, kind = _DIRECTIVE.match(whole, position), "directive"
    else:
      match = _TOKEN.match(whole, position)
      kind = match.lastgroup if match else "mark"
    start, position = position, match.end() if match else position + 1
    if kind == "mark_":
      kind = "string"
    if kind == "space":
      if "\n" in match.group():
        line_has_code = False
      continue
    if kind == "comment":
      line_has_code = line_has_code and "\n" not in match.group()
    elif kind != "directive":
      line_has_code = True
    yield Token(
      kind,
      whole[start:position],
      spliced.original(start),
      # Not the original of `position`: a splice behind the token stays.
      spliced.original(position - 1) + 1,
    )


def code(text: str) -> list[Token]:
  """The tokens without comments."""
  return [t for t in tokens(text) if t.kind != "comment"]


def printable(text: str) -> str:
  """The text without characters that could steer a terminal."""
  return "".join(
    c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text
  )


MAX_MESSAGE = 600  # characters


def one_line(text: str) -> str:
  """The text as a message: printable, without line ends, and cut (a name alone
  may be as long as a candidate's whole text)."""
  text = printable(text)
  return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"


class Lines:
  """Line numbers (1-based) of character offsets in one text."""

  def __init__(self, text: str):
    self._starts = [0] + [m.end() for m in re.finditer("\n", text)]

  def at(self, offset: int) -> int:
    """The line that holds the character."""
    return bisect.bisect_right(self._starts, offset)
