"""A check before each access to memory, in a module's printed text.

The runtime answers the calls that g++ makes of a thread sanitizer's
instrumentation (native/runtime/memory.cpp); the same calls are put in front of
every load and store here. What certainly is a thread's own variable (a named
`alloca`) and what carries `!nosanitize` (our own code; the candidate's text has
lost that word) goes without.
"""

import re

_BYTES = {
  "i1": 1, "i8": 1, "i16": 2, "half": 2, "bfloat": 2, "i32": 4, "float": 4,
  "i64": 8, "double": 8, "ptr": 8, "i128": 16,
}  # fmt: skip
_LOAD = re.compile(
  r"^  (?:%\S+ = )load (?:atomic )?(volatile )?(.+), ptr (.+?)"
  r"(?: \w+)?, align (\d+)(.*)$"
)
_STORE = re.compile(
  r"^  store (?:atomic )?(volatile )?(.+), ptr (.+?)(?: \w+)?, align (\d+)(.*)$"
)
_ALLOCA = re.compile(r"^  (%\S+) = alloca ")
_DBG = re.compile(r", !dbg !\d+")
_FUNCTION_END = re.compile(r"((?: ![\w.]+ !\d+)* \{)$")
_PROBE = ' "probe-stack"="inline-asm"'  # a large frame must not jump the guard
_CLOSERS = {"{": "}", "[": "]", "<": ">"}

DECLARATIONS = "".join(
  f"declare void @__tsan_{v}{k}{n}(ptr)\n"
  for v in ("", "volatile_", "unaligned_")
  for k in ("read", "write")
  for n in (1, 2, 4, 8, 16)
) + "".join(
  f"declare void @__tsan_{k}_range(ptr, i64)\n" for k in ("read", "write")
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


def _call(kind, is_volatile, type_name, pointer, alignment, rest):
  dbg = _DBG.search(rest)
  place = dbg.group() if dbg else ""
  num_bytes = _BYTES.get(type_name)
  if num_bytes is None:
    size = f"ptrtoint (ptr getelementptr ({type_name}, ptr null, i32 1) to i64)"
    return f"  call void @__tsan_{kind}_range(ptr {pointer}, i64 {size}){place}"
  word = "volatile_" if is_volatile else ""
  if alignment < num_bytes:
    word = "unaligned_"
  return f"  call void @__tsan_{word}{kind}{num_bytes}(ptr {pointer}){place}"


def add(text: str) -> str:
  """The module's text with a check in front of each load and store."""
  out, own = [], set()
  for line in text.split("\n"):
    if not line.startswith("  "):
      if line.startswith("define "):
        own = set()
        line = _FUNCTION_END.sub(_PROBE + r"\1", line)
      out.append(line)
      continue
    match = _ALLOCA.match(line)
    if match:
      own.add(match[1])
    kind = None
    if " load " in line and (match := _LOAD.match(line)):
      kind, type_name = "read", match[2]
    elif line.startswith("  store ") and (match := _STORE.match(line)):
      kind, type_name = "write", _type_of(match[2])
    if kind and match[3] not in own and "!nosanitize" not in match[5]:
      out.append(
        _call(
          kind, bool(match[1]), type_name, match[3], int(match[4]), match[5]
        )
      )
    out.append(line)
  return "\n".join([*out, DECLARATIONS])
