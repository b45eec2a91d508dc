"""Integer expressions over a problem's dimensions, for launch plans and shapes.

    expression := term (("+" | "-") term)*
    term       := factor (("*" | "//" | "%") factor)*
    factor     := number | name | "-" factor | "(" expression ")"
                | ("min" | "max" | "ceil_div") "(" expression "," expression ")"
                | "next_pow2" "(" expression ")"

Parsed by hand, never `eval`ed: the text comes from a policy. Length, depth and
the size of every intermediate value are bounded.
"""

import difflib
import re
from collections.abc import Mapping
from typing import NamedTuple

MAX_CHARS = 256
MAX_DEPTH = 32
MAX_VALUE = 2**63 - 1

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|(//|[-+*/%(),]))", re.ASCII)


class ExpressionError(ValueError):
  """The text is no expression, or has no value for these dimensions."""


class Node(NamedTuple):
  """`op` is "number", "name", an operator or a function's name."""

  op: str
  arguments: tuple


def _ceil_div(a: int, b: int) -> int:
  if b == 0:
    raise ExpressionError("ceil_div by zero")
  return -(-a // b)


def _next_pow2(a: int) -> int:
  if a > 2**62:
    raise ExpressionError(f"next_pow2({a}) is too large")
  return 1 if a <= 1 else 1 << (a - 1).bit_length()


def _floor_div(a: int, b: int) -> int:
  if b == 0:
    raise ExpressionError("division by zero")
  return a // b


def _modulo(a: int, b: int) -> int:
  if b == 0:
    raise ExpressionError("modulo by zero")
  return a % b


_BINARY = {
  "+": lambda a, b: a + b,
  "-": lambda a, b: a - b,
  "*": lambda a, b: a * b,
  "//": _floor_div,
  "%": _modulo,
}
_FUNCTIONS = {  # name: (number of arguments, meaning)
  "min": (2, min),
  "max": (2, max),
  "ceil_div": (2, _ceil_div),
  "next_pow2": (1, _next_pow2),
}


class _Parser:
  """Recursive descent over the tokens of one text."""

  def __init__(self, text: str):
    if len(text) > MAX_CHARS:
      raise ExpressionError(
        f"expression of {len(text)} characters; at most {MAX_CHARS}"
      )
    self.text = text
    self.tokens = self._scan(text)
    self.at = 0
    self.depth = 0

  def _scan(self, text):
    tokens, position = [], 0
    stripped = text.rstrip()
    while position < len(stripped):
      match = _TOKEN.match(stripped, position)
      if not match:
        raise ExpressionError(
          f"unexpected {stripped[position:].strip()[:1]!r} in `{text.strip()}`"
        )
      tokens.append(match.group(1) or match.group(2) or match.group(3))
      position = match.end()
    return tokens

  def peek(self):
    return self.tokens[self.at] if self.at < len(self.tokens) else None

  def take(self, expected=None):
    token = self.peek()
    if token is None or (expected is not None and token != expected):
      wanted = f"`{expected}`" if expected else "more"
      got = f"`{token}`" if token is not None else "the end"
      raise ExpressionError(
        f"expected {wanted}, got {got} in `{self.text.strip()}`"
      )
    self.at += 1
    return token

  def expression(self):
    self.depth += 1
    if self.depth > MAX_DEPTH:
      raise ExpressionError(f"nested deeper than {MAX_DEPTH}")
    node = self.term()
    while self.peek() in ("+", "-"):
      op = self.take()
      node = Node(op, (node, self.term()))
    self.depth -= 1
    return node

  def term(self):
    node = self.factor()
    while self.peek() in ("*", "//", "%", "/"):
      op = self.take()
      if op == "/":
        raise ExpressionError(
          "`/` is not defined: use // (rounds down) or ceil_div(a, b)"
        )
      node = Node(op, (node, self.factor()))
    return node

  def factor(self):
    token = self.take()
    if token.isdigit():
      if len(token) > 19 or int(token) > MAX_VALUE:
        raise ExpressionError(f"number of {len(token)} digits is too large")
      return Node("number", (int(token),))
    if token == "-":
      self.depth += 1
      if self.depth > MAX_DEPTH:
        raise ExpressionError(f"nested deeper than {MAX_DEPTH}")
      inner = self.factor()
      self.depth -= 1
      return Node("-", (Node("number", (0,)), inner))
    if token == "(":
      node = self.expression()
      self.take(")")
      return node
    if not (token[0].isalpha() or token[0] == "_"):
      raise ExpressionError(f"unexpected `{token}` in `{self.text.strip()}`")
    if self.peek() != "(":
      return Node("name", (token,))
    if token not in _FUNCTIONS:
      raise ExpressionError(
        f"no function `{token}`; there are {', '.join(_FUNCTIONS)}"
      )
    self.take("(")
    arguments = [self.expression()]
    while self.peek() == ",":
      self.take()
      arguments.append(self.expression())
    self.take(")")
    wanted = _FUNCTIONS[token][0]
    if len(arguments) != wanted:
      raise ExpressionError(
        f"`{token}` takes {wanted} arguments, got {len(arguments)}"
      )
    return Node(token, tuple(arguments))


def parse(text: str) -> Node:
  """Parses one expression.

  Raises:
    ExpressionError: with one line that says what was got and what is allowed.
  """
  parser = _Parser(text)
  if not parser.tokens:
    raise ExpressionError("empty expression")
  node = parser.expression()
  if parser.peek() is not None:
    raise ExpressionError(f"unexpected `{parser.peek()}` in `{text.strip()}`")
  return node


def evaluate(node: Node, dims: Mapping[str, int]) -> int:
  """The value for these dimensions.

  Raises:
    ExpressionError: unknown name, division by zero or a value beyond 2^63.
  """
  if node.op == "number":
    return node.arguments[0]
  if node.op == "name":
    name = node.arguments[0]
    if name not in dims:
      near = difflib.get_close_matches(name, dims, n=1)
      hint = f" (did you mean `{near[0]}`?)" if near else ""
      raise ExpressionError(
        f"no dimension `{name}`{hint}; there are {', '.join(dims)}"
      )
    return dims[name]
  values = [evaluate(argument, dims) for argument in node.arguments]
  if node.op in _BINARY:
    value = _BINARY[node.op](*values)
  else:
    value = _FUNCTIONS[node.op][1](*values)
  if abs(value) > MAX_VALUE:
    raise ExpressionError("value beyond 64 bits")
  return value


_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "//": 2, "%": 2}


def text_of(node: Node) -> str:
  """The expression as text, with as few parentheses as it needs."""
  return _text(node, 0)


def _text(node, context):
  if node.op in ("number", "name"):
    return str(node.arguments[0])
  if node.op in _FUNCTIONS:
    return f"{node.op}({', '.join(_text(a, 0) for a in node.arguments)})"
  level = _PRECEDENCE[node.op]
  left, right = node.arguments
  if node.op == "-" and left == Node("number", (0,)):
    text, level = f"-{_text(right, 3)}", 2
  else:
    text = f"{_text(left, level)} {node.op} {_text(right, level + 1)}"
  return f"({text})" if level < context else text


def names(node: Node) -> frozenset[str]:
  """The dimension names that the expression uses."""
  if node.op == "name":
    return frozenset(node.arguments)
  if node.op == "number":
    return frozenset()
  return frozenset().union(*(names(a) for a in node.arguments))


def value_of(text: str, dims: Mapping[str, int]) -> int:
  """Parses and evaluates in one step."""
  return evaluate(parse(text), dims)
