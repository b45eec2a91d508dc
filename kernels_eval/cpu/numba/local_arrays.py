"""Which pointers of a function lead into a thread's own arrays.

Read off the printed text, line by line, as far as it shows: by way of indices
and of the structs that are Numba's arrays. What comes out of a branch's end is
not followed; such a pointer is checked as any other.
"""

import re

_ALLOCA = re.compile(r"^  (%\S+) = alloca (.+?)(?:, align \d+)?(?:, !.*)?$")
_DERIVED = re.compile(
  r"^  (%\S+) = (?:getelementptr [^%]*?|bitcast )ptr (%[^,\s]+)(?:,| to )"
)
_INSERTED = re.compile(
  r"^  (%\S+) = insertvalue \{.*\} (%[^,\s]+|\{.*\}|undef|poison), .+? "
  r"(\S+), (\d+)(?:, \d+)*(?:, !.*)?$"
)
_EXTRACTED = re.compile(
  r"^  (%\S+) = extractvalue \{.*\} (%[^,\s]+), (\d+)(?:, !.*)?$"
)


class LocalArrays:
  """What is known after the lines read so far of one function."""

  def __init__(self):
    self._types = {}  # alloca: its type
    self._allocas = {}  # pointer: the alloca that it leads into
    self._members = {}  # struct: {index: alloca}

  def read(self, line: str) -> None:
    """Learns from the function's next line."""
    if match := _ALLOCA.match(line):
      self._types[match[1]] = match[2]
      self._allocas[match[1]] = match[1]
    elif match := _DERIVED.match(line):
      self._allocas[match[1]] = self._allocas.get(match[2])
    elif match := _INSERTED.match(line):
      members = dict(self._members.get(match[2], {}))
      members[match[4]] = self._allocas.get(match[3])
      self._members[match[1]] = members
    elif match := _EXTRACTED.match(line):
      members = self._members.get(match[2], {})
      self._allocas[match[1]] = members.get(match[3])

  def is_variable(self, pointer: str) -> bool:
    """Whether the pointer is an alloca itself."""
    return pointer in self._types

  def behind(self, pointer: str) -> tuple[str, str] | None:
    """(alloca, its type) that the pointer leads into, if that is known."""
    alloca = self._allocas.get(pointer)
    return None if alloca is None else (alloca, self._types[alloca])
