"""The outer declarations of a text: functions with a body, and variables.

No grammar: brackets, the words in front of them, and what C++ looks like in
kernels. What is not understood is left out.
"""

from collections.abc import Collection
from typing import NamedTuple

from kernels_eval import source

DEVICE_WORDS = frozenset(
  ("__device__", "__global__", "__constant__", "__shared__", "__managed__")
)
_WITH_PARENTHESES = frozenset(
  ("__launch_bounds__", "__align__", "alignas", "decltype", "noexcept")
  + ("explicit", "__cluster_dims__", "__attribute__")
)
_NO_VARIABLE = frozenset(
  """using typedef friend static_assert template struct class union enum
  namespace operator""".split()
)
_SCALARS = frozenset(
  """void bool char short int long float double signed unsigned size_t ptrdiff_t
  int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uint uchar
  ushort intptr_t uintptr_t wchar_t""".split()
)
_QUALIFIERS = (
  frozenset(
    """const volatile static inline extern constexpr virtual explicit friend
    typename struct register __inline__ __forceinline__ __noinline__ __host__
    __restrict__ __restrict""".split()
  )
  | DEVICE_WORDS
)


class Declaration(NamedTuple):
  """`first` is the index of the token behind `template <...>` and
  `extern "C"`, `start` of the first token, `end` lies behind the last."""

  first: int
  start: int
  end: int
  names: tuple[str, ...]  # empty for an operator
  kind: str  # function or variable
  words: frozenset[str]  # of the part in front of the body
  is_device: bool
  takes_objects: bool  # by value, or returns one


def _close(tokens, opening):
  """Index of the bracket that closes the one at `opening`."""
  depth = 0
  for i in range(opening, len(tokens)):
    if tokens[i].kind == "string":
      continue
    depth += tokens[i].text in "([{"
    depth -= tokens[i].text in ")]}"
    if depth == 0:
      return i
  return len(tokens) - 1


def _behind_headers(tokens, first, last):
  """Steps over `template <...>` and `extern "C"`."""
  while first < last:
    if tokens[first].text == "template":
      depth, i = 0, first + 1
      while i < last:
        text = tokens[i].text
        depth += (text == "<") - (text == ">") - 2 * (text == ">>")
        i += 1
        if depth <= 0:
          break
      first = i
    elif tokens[first].text == "extern" and first + 1 < last:
      if tokens[first + 1].kind != "string":
        return first
      first += 2
    else:
      return first
  return first


def _parameters(tokens, first, last):
  """(index of the name, index of its `(`), or None. The name of an operator
  is the word `operator`."""
  i, operator = first, None
  while i < last:
    if tokens[i].text == "operator":
      operator = i
      # `operator()(`: the first pair belongs to the name.
      i += 3 if i + 2 < last and tokens[i + 1].text == "(" else 1
      continue
    if tokens[i].text == "(":
      if operator is not None:
        return operator, i
      before = tokens[i - 1]
      if i > first and before.kind == "name":
        if before.text not in _WITH_PARENTHESES:
          return i - 1, i
      i = _close(tokens, i)
    i += 1
  return None


def _is_object(tokens):
  """Whether the tokens of a parameter, or of what a function returns, mean a
  class by value (or a type whose name is not known)."""
  texts = [t.text for t in tokens]
  if "*" in texts or "&" in texts or "&&" in texts or "[" in texts:
    return False
  words = [
    t.text for t in tokens if t.kind == "name" and t.text not in _QUALIFIERS
  ]
  return bool(words) and not _SCALARS.intersection(words)


def _takes_objects(tokens, first, name, opening):
  """Whether a function has a parameter by value that is an object, or returns
  one."""
  if _is_object(tokens[first:name]):
    return True
  close, part, depth = _close(tokens, opening), opening + 1, 0
  for i in range(opening + 1, close + 1):
    text = tokens[i].text
    depth += (text in ("(", "[", "{", "<")) - (text in (")", "]", "}", ">"))
    if i == close or (text == "," and depth == 0):
      if _is_object(tokens[part:i]):
        return True
      part = i + 1
  return False


def _has_initialiser(tokens, first, last):
  """Whether `= {...}` follows, and no body. (A parameter's default value is in
  parentheses, `operator=` is a name.)"""
  i = first
  while i < last:
    if tokens[i].text in ("(", "["):
      i = _close(tokens, i)
    elif tokens[i].text == "=" and tokens[i - 1].text != "operator":
      return True
    i += 1
  return False


def _variable_names(tokens, first, last):
  """Names that `float a = 1, b[2];` declares, unless they are constants that
  a device compiler takes over."""
  words = {t.text for t in tokens[first:last]}
  if words & _NO_VARIABLE:
    return ()
  is_constant = bool(words & {"const", "constexpr"})
  names, i, has_type = [], first, False
  while i < last:
    token = tokens[i]
    following = tokens[i + 1].text if i + 1 < last else ";"
    if token.text in ("(", "[", "{") and token.kind == "mark":
      i = _close(tokens, i)
    elif token.text == "=":
      while i < last and tokens[i].text != ",":
        i = _close(tokens, i) if tokens[i].text in ("(", "[", "{") else i
        i += 1
      continue
    elif token.kind == "name" and has_type:
      if following == "(":
        return ()  # a prototype
      if following == "[" or (following in (";", ",", "=", "{")):
        if following == "[" or not is_constant:
          names.append(token.text)
    has_type = has_type or token.kind == "name"
    i += 1
  return tuple(names)


_MAX_HEAD = 2000  # tokens in front of a body; more is no declaration


def read(
  tokens: list[source.Token], device_macros: Collection[str] = ()
) -> list[Declaration]:
  """Functions with a body and variables, outside of functions, in order.

  Args:
    tokens: without comments and preprocessor lines.
    device_macros: more words that mean `__device__`.
  """
  device_words = DEVICE_WORDS.union(device_macros)
  found, scopes, first, i = [], [], 0, 0
  while i < len(tokens):
    token = tokens[i]
    if token.kind != "mark":
      i += 1
      continue
    if i - first > _MAX_HEAD:
      first = i
    if token.text in ("(", "["):
      i = _close(tokens, i)
    elif token.text == ";":
      head = _behind_headers(tokens, first, i)
      if "class" not in scopes and head == first:
        names = _variable_names(tokens, head, i)
        if names:
          words = frozenset(t.text for t in tokens[first:i])
          found.append(
            Declaration(
              head,
              first,
              i + 1,
              names,
              "variable",
              words,
              bool(words & device_words),
              False,
            )
          )
      first = i + 1
    elif token.text == ":":
      if tokens[i - 1].text in ("public", "private", "protected"):
        first = i + 1
    elif token.text == "}":
      if scopes:
        scopes.pop()
      first = i + 1
    elif token.text == "{":
      head = _behind_headers(tokens, first, i)
      words = frozenset(t.text for t in tokens[first:i])
      place = _parameters(tokens, head, i)
      if "namespace" in words or head == i:
        scopes.append("namespace")
        first = i + 1
      elif place is None and words & {"struct", "class", "union"}:
        scopes.append("class")
        first = i + 1
      elif place is not None and not _has_initialiser(tokens, head, i):
        name, opening = place
        end = _close(tokens, i) + 1
        names = (tokens[name].text,)
        found.append(
          Declaration(
            head,
            first,
            end,
            () if names == ("operator",) else names,
            "function",
            words,
            bool(words & device_words),
            _takes_objects(tokens, head, name, opening),
          )
        )
        i, first = end - 1, end
      else:  # an initialiser or an enumeration
        i = _close(tokens, i)
    i += 1
  return found


_MAX_RETURN_TYPE = 100  # tokens between a lambda's parameters and its body


def _pairs(tokens, first, last):
  """Index of the closing bracket by that of the opening one."""
  pairs, opened = {}, []
  for i in range(first, last):
    if tokens[i].kind != "mark":
      continue
    if tokens[i].text in "([{":
      opened.append(i)
    elif tokens[i].text in ")]}" and opened:
      pairs[opened.pop()] = i
  return pairs


class Lambda(NamedTuple):
  """Indices: of the `(` and the `)` of its parameters, of the `->` or the `{`
  that comes behind `mutable` and its kind, and behind its body."""

  opening: int
  closing: int
  after: int
  end: int


def lambdas(tokens, first: int, last: int) -> list[Lambda]:
  """The lambdas in tokens[first:last] that have parameters."""
  pairs, found = _pairs(tokens, first, last), []
  for i in range(first + 1, last - 1):
    if tokens[i].text != "[" or tokens[i].kind != "mark":
      continue
    before = tokens[i - 1]
    is_subscript = before.text in (")", "]", "[") or (
      before.kind in ("name", "string") and before.text != "return"
    )
    opening = pairs.get(i, last) + 1
    if is_subscript or opening >= last or tokens[opening].text != "(":
      continue
    closing = body = pairs.get(opening, last)
    furthest = min(last, closing + _MAX_RETURN_TYPE)
    after = None
    while body < furthest and tokens[body].text not in ("{", ";"):
      if tokens[body].text == "->" and after is None:
        after = body
      body += 1
    if body in pairs:
      found.append(Lambda(opening, closing, after or body, pairs[body] + 1))
  return found


def recursive(functions: list[Declaration], tokens) -> set[str]:
  """Names of functions that may come to call themselves."""
  names = {n for f in functions for n in f.names}
  calls = {n: set() for n in names}
  for f in functions:
    inside = {t.text for t in tokens[f.first : f.end] if t.kind == "name"}
    for name in f.names:
      body = sum(t.text == name for t in tokens[f.first : f.end])
      calls[name] |= (inside & names) - ({name} if body == 1 else set())
  return _on_cycles(calls)


def _on_cycles(calls):
  """Nodes of a graph that lie on a cycle, in linear time (a text may hold
  thousands of functions that call one another): Tarjan's strongly connected
  components, without recursion."""
  found, index, low, open_nodes, is_open = set(), {}, {}, [], set()
  for root in calls:
    if root in index:
      continue
    path = []  # (node, its callees that are left)
    entered = root
    while True:
      if entered is not None:
        index[entered] = low[entered] = len(index)
        open_nodes.append(entered)
        is_open.add(entered)
        path.append((entered, iter(calls[entered])))
      node, callees = path[-1]
      entered = None
      for callee in callees:
        if callee not in index:
          entered = callee
          break
        if callee in is_open:
          low[node] = min(low[node], index[callee])
      if entered is not None:
        continue
      path.pop()
      if low[node] == index[node]:
        component = [open_nodes.pop()]
        while component[-1] != node:
          component.append(open_nodes.pop())
        is_open.difference_update(component)
        if len(component) > 1 or node in calls[node]:
          found.update(component)
      if not path:
        break
      parent = path[-1][0]
      low[parent] = min(low[parent], low[node])
  return found
