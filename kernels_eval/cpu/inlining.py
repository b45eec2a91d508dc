"""Which functions and lambdas of device code are always inlined.

The compiler's instrumentation overlooks objects in memory that are handed to a
call or come from one (`s[i] = make(x[i])`). Inlined, both are plain
assignments, which it sees.
"""

from kernels_eval import source
from kernels_eval.cpu import declarations
from kernels_eval.cpu.declarations import Declaration


def marks(
  found: list[Declaration], tokens: list[source.Token]
) -> list[tuple[int, str]]:
  """(token index, text to put in front of it) for what is to be inlined."""
  return [*_function_marks(found, tokens), *_lambda_marks(found, tokens)]


def _function_marks(found, tokens):
  """Of functions that take or return objects."""
  device = [
    d
    for d in found
    if d.kind == "function" and d.is_device and "__global__" not in d.words
  ]
  objects = [d for d in device if d.takes_objects and "virtual" not in d.words]
  if not objects:
    return []
  recursive = declarations.recursive(device, tokens)
  return [
    (
      d.first,
      "KE_ALWAYS_INLINE "
      if d.words & {"inline", "__inline__", "__forceinline__"}
      else "inline KE_ALWAYS_INLINE ",
    )
    for d in objects
    if not recursive.intersection(d.names)
  ]


# Tokens of a lambda that are looked through: texts may nest them by thousands.
_MAX_PARAMETERS, _MAX_LAMBDA = 200, 1000


def _may_call_itself(found, tokens):
  """Whether a lambda's parameter of unknown type is called in its body."""
  if found.closing - found.opening > _MAX_PARAMETERS:
    return True
  names = {
    t.text for t in tokens[found.opening : found.closing] if t.kind == "name"
  }
  return "auto" in names and (
    found.end - found.closing > _MAX_LAMBDA
    or any(
      tokens[i].text in names and tokens[i + 1].text == "("
      for i in range(found.closing, found.end - 1)
    )
  )


def _lambda_marks(found, tokens):
  """Of lambdas. One that may be handed to itself cannot be inlined and stays as
  it is."""
  return [
    (each.after, "KE_ALWAYS_INLINE ")
    for d in found
    if d.kind == "function" and d.is_device
    for each in declarations.lambdas(tokens, d.first, d.end)
    if not _may_call_itself(each, tokens)
  ]
