"""A check before each access to memory, in a module's printed text.

The runtime answers the calls that g++ makes of a thread sanitizer's
instrumentation (native/runtime/memory.cpp); the same calls are put in front of
every load and store here. An index into a thread's own array is held against
that array's size. What certainly is a thread's own variable (a named `alloca`)
and what carries `!nosanitize` (our own code; the candidate's text has lost that
word) goes without.
"""

import re

from kernels_eval.cpu.numba import local_arrays

_BYTES = {
  "i1": 1, "i8": 1, "i16": 2, "half": 2, "bfloat": 2, "i32": 4, "float": 4,
  "i64": 8, "double": 8, "ptr": 8, "i128": 16,
}  # fmt: skip
_ACCESS = re.compile(
  r"^  (?:%\S+ = (load)|(store)) (?:atomic )?(volatile )?(.+), ptr (.+?)"
  r"(?: \w+)?, align (\d+)(.*)$"
)
_DBG = re.compile(r", !dbg !\d+")
_FUNCTION_END = re.compile(r"((?: ![\w.]+ !\d+)* \{)$")
_PROBE = ' "probe-stack"="inline-asm"'  # a large frame must not jump the guard
_CLOSERS = {"{": "}", "[": "]", "<": ">"}

_DECLARATIONS = (
  "".join(
    f"declare void @__tsan_{v}{k}{n}(ptr)\n"
    for v in ("", "volatile_", "unaligned_")
    for k in ("read", "write")
    for n in (1, 2, 4, 8, 16)
  )
  + "declare void @__tsan_read_range(ptr, i64)\n"
  + "declare void @__tsan_write_range(ptr, i64)\n"
  + "declare void @ke_check_local(ptr, i64, ptr, i64, i32)\n"
)


def _type_of(operand):
  """The type at the start of `TYPE VALUE`."""
  if operand[0] not in _CLOSERS:
    return operand.split(" ", 1)[0]
  depth = 0
  for i, c in enumerate(operand):
    depth += c in _CLOSERS
    depth -= c in _CLOSERS.values()
    if depth == 0:
      return operand[: i + 1]
  return operand


def _size(type_name):
  return f"ptrtoint (ptr getelementptr ({type_name}, ptr null, i32 1) to i64)"


def _check(match, arrays):
  """The call in front of an access, or None where none is needed."""
  _, store, volatile, operand, pointer, alignment, rest = match.groups()
  if "!nosanitize" in rest or arrays.is_variable(pointer):
    return None
  kind = "write" if store else "read"
  type_name = _type_of(operand) if store else operand
  num_bytes = _BYTES.get(type_name)
  behind = arrays.behind(pointer)
  dbg = _DBG.search(rest)
  place = dbg.group() if dbg else ""
  if num_bytes is None:
    call = f"@__tsan_{kind}_range(ptr {pointer}, i64 {_size(type_name)})"
  elif behind is not None:
    call = (
      f"@ke_check_local(ptr {pointer}, i64 {num_bytes}, ptr {behind[0]}, "
      f"i64 {_size(behind[1])}, i32 {int(kind == 'write')})"
    )
  else:
    word = "volatile_" if volatile else ""
    if int(alignment) < num_bytes:
      word = "unaligned_"
    call = f"@__tsan_{word}{kind}{num_bytes}(ptr {pointer})"
  return f"  call void {call}{place}"


def add(text: str) -> str:
  """The module's text with a check in front of each load and store."""
  out, arrays = [], local_arrays.LocalArrays()
  for line in text.split("\n"):
    if line.startswith("define "):
      arrays = local_arrays.LocalArrays()
      line = _FUNCTION_END.sub(_PROBE + r"\1", line)
    elif line.startswith("  "):
      arrays.read(line)
      match = _ACCESS.match(line)
      check = _check(match, arrays) if match else None
      if check is not None:
        out.append(check)
    out.append(line)
  return "\n".join([*out, _DECLARATIONS])
