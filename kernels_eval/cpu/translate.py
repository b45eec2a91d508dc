"""CUDA C++ text to C++ text that `native/device.h` understands.

Almost all of CUDA's words are macros there. What a macro cannot do is done
here, keeping every line where it is, so that diagnostics need no mapping:

  - `__shared__` declarations become a type, a static variable and a record, so
    that the run-time checks know each variable's name, size and state;
  - `extern __shared__` arrays become another name of the runtime's own array;
  - preprocessor lines and names that `refusals.py` knows are dropped or
    refused.

A trailer gives each launch a C entry point and checks parameter types.
"""

from typing import NamedTuple

from kernels_eval import dtypes, source
from kernels_eval.candidate import Candidate
from kernels_eval.cpu import declarations, host_code, inlining, refusals
from kernels_eval.launch_plan import CandidateError, Launch
from kernels_eval.problems import spec
from kernels_eval.schema import Status

SOURCE_NAME = "kernel.cu"
TRAILER_NAME = "launch"

_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_DIGRAPHS = ("%:", "<%", "%>")


class _Scopes:
  """Tells whether a place is inside of a function."""

  def __init__(self):
    self.stack = []

  def step(self, tokens, i):
    text = tokens[i].text
    if tokens[i].kind == "string":
      return
    if text == "{":
      self.stack.append(not self._is_namespace(tokens, i))
    elif text == "}" and self.stack:
      self.stack.pop()

  def _is_namespace(self, tokens, i):
    before = [t.text for t in tokens[max(0, i - 6) : i]]
    if before[-1:] and before[-1].startswith('"') and "extern" in before[-2:]:
      return True
    for text in reversed(before):
      if text == "namespace":
        return True
      if text in (";", "}", "{", ")"):
        return False
    return False

  @property
  def in_function(self):
    return any(self.stack)


def _declaration_end(tokens, start):
  """Index of the `;` that ends the declaration, or None."""
  depth = 0
  for i in range(start, len(tokens)):
    text = tokens[i].text
    if tokens[i].kind == "string":
      continue
    depth += text in _CLOSERS
    depth -= text in _CLOSERS.values()
    if depth < 0 or tokens[i].kind == "directive":
      return None
    if text == ";" and depth == 0:
      return i
  return None


def _declarators(tokens, first, last):
  """Indices of the declared names in tokens[first:last]; None where it is no
  plain declaration."""
  found, name, depth, angle, seen_suffix = [], None, 0, 0, False
  for i in range(first, last):
    token = tokens[i]
    if token.kind == "string":
      continue
    text = token.text
    if text in _CLOSERS:
      if text == "[" and depth == 0 and angle == 0:
        seen_suffix = True
      depth += 1
      continue
    if text in _CLOSERS.values():
      depth -= 1
      continue
    if depth:
      # `float (*p)[4]`: the name stands inside.
      before = [t.text for t in tokens[i - 2 : i]]
      if token.kind == "name" and before == ["(", "*"] and depth == 1:
        name = i
      continue
    if text == "<" and name is not None and not seen_suffix:
      angle += 1
      continue
    if angle:
      angle = max(angle - {">": 1, ">>": 2}.get(text, 0), 0)
      continue
    if text == "=":
      return None
    if text == ",":
      found.append(name)
      name, seen_suffix = None, False
    elif token.kind == "name" and not seen_suffix:
      if text not in ("__align__", "alignas", "const", "volatile"):
        name = i
  found.append(name)
  return None if None in found else found


def _first_of_declaration(tokens, i):
  """Index where the declaration round tokens[i] begins."""
  first = i
  while first > 0 and tokens[first - 1].text not in (";", "{", "}", ":", ")"):
    if tokens[first - 1].kind == "directive":
      break
    first -= 1
  # `__align__(16) __shared__ ...`: step over the parentheses as well.
  if first > 1 and tokens[first - 1].text == ")":
    j = first - 1
    while j > 0 and tokens[j].text != "(":
      j -= 1
    if j > 0 and tokens[j - 1].text in ("__align__", "alignas"):
      first = j - 1
      while first > 0 and tokens[first - 1].text in ("extern", "static"):
        first -= 1
  return first


def _alignment_edits(tokens, first, last):
  """`alignas` may not stand in a typedef; the attribute may."""
  edits, i = [], first
  while i < last - 2:
    if tokens[i].text != "alignas" or tokens[i + 1].text != "(":
      i += 1
      continue
    is_value = tokens[i + 2].kind == "number" or tokens[i + 2].text in (
      *("sizeof", "alignof"),
    )
    edits.append((tokens[i], "__align__" if is_value else "__align__(alignof"))
    close = _matching(tokens, i + 1, last)
    if not is_value:
      edits.append((tokens[close], "))"))
    i = close + 1  # never twice over the same tokens
  return edits


def _matching(tokens, opening, last):
  depth = 0
  for i in range(opening, last):
    depth += tokens[i].text == "("
    depth -= tokens[i].text == ")"
    if depth == 0:
      return i
  return last - 1


def _rewrite_shared(tokens, i, aliases, scopes, lines, edits, of_file):
  """Adds the edits for the declaration round the `__shared__` at i; returns
  the index of its last token."""
  line = lines.at(tokens[i].start)
  first = _first_of_declaration(tokens, i)
  end = _declaration_end(tokens, i)
  if end is None:
    raise CandidateError(
      Status.COMPILE_ERROR, "a `__shared__` declaration has no end", line
    )
  declarators = _declarators(tokens, i + 1, end)
  if declarators is None:
    raise CandidateError(
      Status.COMPILE_ERROR,
      "cannot read this `__shared__` declaration (an initializer is not allowed"
      " for shared memory)",
      line,
    )
  words = {t.text for t in tokens[first:end]}
  words |= set(aliases.get(tokens[i].text, "").split())
  edits += _alignment_edits(tokens, first, end)
  if "extern" in words:
    edits.append(
      (tokens[i], aliases.get(tokens[i].text, "").replace("__shared__", ""))
    )
    after = []
    for k in declarators:
      name = tokens[k].text
      edits.append((tokens[k], f"ke_extern_{name}"))
      after.append(f"KE_DYNAMIC_SHARED({name});")
    edits.append((tokens[end], "; " + " ".join(after)))
    return end
  if scopes.stack and not scopes.in_function:
    raise refusals.unsupported("a `__shared__` variable of a namespace", line)
  edits.append((tokens[i], "typedef"))
  edits += [(t, "") for t in tokens[first:end] if t.text == "static"]
  after = []
  for k in declarators:
    name = tokens[k].text
    edits.append((tokens[k], f"ke_type_{name}"))
    after.append(f"KE_SHARED({name}, {line});")
    if scopes.stack:
      after.append(f"ke_enter_shared(&ke_record_{name});")
    else:
      of_file.append(name)
  edits.append((tokens[end], "; " + " ".join(after)))
  return end


def _edited(program, edits):
  parts, position = [], 0
  for token, replacement in sorted(edits, key=lambda e: e[0].start):
    parts.append(program[position : token.start])
    # A replaced token may span lines (a continued directive).
    missing = program.count("\n", token.start, token.end)
    parts.append(replacement + "\n" * (missing - replacement.count("\n")))
    position = token.end
  return "".join([*parts, program[position:]])


class Unit(NamedTuple):
  """A translated text."""

  text: str
  shared_of_file: tuple[str, ...]  # shared variables outside of functions
  device_lines: tuple[tuple[int, int], ...]  # for host_code.check


def translate_source(program: str) -> Unit:
  """The candidate's text for g++, line for line.

  Raises:
    CandidateError: COMPILE_ERROR for what the CPU executor cannot do,
      CONTRACT_VIOLATION for names that belong to it.
  """
  tokens = source.code(program)
  lines = source.Lines(program)
  edits = []  # (token, replacement)
  macros = refusals.Macros()
  aliases = macros.shared
  scopes = _Scopes()
  shared_until = done_until = -1
  shared_of_file = []
  for i, token in enumerate(tokens):
    line = lines.at(token.start)
    if token.kind == "directive":
      replacement = refusals.directive(token.text, line, macros)
      if replacement is not None:
        edits.append((token, replacement))
      continue
    if token.kind == "string" and 'R"' in token.text[:4]:
      raise refusals.unsupported("raw string literals", line)
    if token.kind == "mark":
      if program[token.start : token.start + 2] in _DIGRAPHS:
        raise refusals.unsupported("digraphs", line)
    if token.kind == "name" and i > done_until:
      if token.text == "__attribute__" and i + 1 < len(tokens):
        done_until = _matching(tokens, i + 1, len(tokens))
        replacement = refusals.attribute(tokens[i : done_until + 1])
        if replacement is not None:
          edits.append((token, replacement))
          edits += [(t, "") for t in tokens[i + 1 : done_until + 1]]
          continue
      refusals.check_name(token.text, line)
      if token.text == "__shared__" or token.text in aliases:
        if i <= shared_until:
          raise CandidateError(
            Status.COMPILE_ERROR, "`__shared__` twice in one declaration", line
          )
        shared_until = _rewrite_shared(
          tokens, i, aliases, scopes, lines, edits, shared_of_file
        )
      elif token.text == "_Pragma":
        close = _matching(tokens, i + 1, min(i + 4, len(tokens)))
        edits += [(t, "") for t in tokens[i : close + 1]]
    scopes.step(tokens, i)
  plain = [t for t in tokens if t.kind != "directive"]
  found = [
    d._replace(words=d.words | {"__global__"}) if d.words & macros.kernel else d
    for d in declarations.read(plain, macros.device)
  ]
  for index, mark in [
    *host_code.marks(found, plain),
    *inlining.marks(found, plain),
  ]:
    start = plain[index].start
    edits.append((source.Token("mark", "", start, start), mark))
  device_lines = tuple(
    (lines.at(plain[d.start].start), lines.at(plain[d.end - 1].start))
    for d in found
    if d.kind == "function" and d.is_device
  )
  return Unit(_edited(program, edits), tuple(shared_of_file), device_lines)


def parameter_type(name: str, problem: spec.Problem, scratch) -> str:
  """The C++ type that a launch passes for a parameter."""
  for tensor in (*problem.inputs, *problem.outputs, *scratch):
    if tensor.name == name:
      return f"{dtypes.DTYPES[tensor.dtype].cuda}*"
  if any(s.name == name for s in problem.scalars):
    return "float"
  return "int"


def _entry(index, launch, types, shared_of_file) -> str:
  function = f"{launch.kernel}{launch.template}"
  f = f"ke_function_{index}"
  checks = "".join(
    f"static_assert(ke_device::fits<ke_device::parameter<{i}, {f}>, {t}>"
    f'::value, "KE_TYPE {index} {i}");'
    for i, t in enumerate(types)
  )
  values = ", ".join(
    f"ke_device::argument<ke_device::parameter<{i}, {f}>>(ke_arguments[{i}])"
    for i in range(len(types))
  )
  enter = "".join(f"ke_enter_shared(&ke_record_{v}); " for v in shared_of_file)
  return (
    f"typedef decltype(&{function}) {f};\n"
    f'static_assert(ke_device::parameters<{f}>::is_void, "KE_VOID {index}");\n'
    f"static_assert(ke_device::parameters<{f}>::count == {len(types)}, "
    f'"KE_COUNT {index}");\n'
    f"{checks}\n"
    f"KE_ENTRY void ke_launch_{index}(void** ke_arguments) "
    f"{{ (void)ke_arguments; {enter}{function}({values}); }}\n"
  )


def entries(candidate: Candidate) -> list[Launch]:
  """One launch for each distinct way in which a kernel is called."""
  distinct = {}
  for launch in candidate.launches:
    key = (launch.kernel, launch.template, launch.arguments)
    distinct.setdefault(key, launch)
  return list(distinct.values())


def translate(candidate: Candidate, problem: spec.Problem) -> Unit:
  """The whole translation unit: candidate, then entry points."""
  unit = translate_source(candidate.source)
  parts = [
    f'#line 1 "{SOURCE_NAME}"\n',
    unit.text,
    # Two line ends: the text may end with a backslash.
    f'\n\n#line 1 "{TRAILER_NAME}"\n',
  ]
  for index, launch in enumerate(entries(candidate)):
    types = [
      parameter_type(a, problem, candidate.scratch) for a in launch.arguments
    ]
    parts.append(_entry(index, launch, types, unit.shared_of_file))
  return unit._replace(text="".join(parts))
