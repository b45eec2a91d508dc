"""Text of an answer to the source of a function, and what it may hold."""

import ast
import re
import warnings

from kernels_eval.outcome import Stop
from kernels_eval.schema import Diagnostic, Status

MODULES = (
  "bisect",
  "collections",
  "functools",
  "heapq",
  "itertools",
  "math",
  "operator",
  "re",
  "string",
  "typing",
)
"""What a candidate may import."""

MAX_CHARACTERS = 20_000
_FENCE = re.compile(r"^```[ \t]*(\w*)[ \t]*\n(.*?)^```[ \t]*$", re.M | re.S)
_DEFINITION = re.compile(r"^(?:async +)?def +solve\b", re.M)


def _refuse(message, line=None):
  return Stop(
    Status.CONTRACT_VIOLATION,
    message,
    diagnostics=(Diagnostic("error", message, line, None),),
  )


def source_of(text: str) -> str:
  """The last code block that defines `solve`, or the text itself if it does.

  Raises:
    Stop: NO_KERNEL (no function) or CONTRACT_VIOLATION (too long).
  """
  text = text.replace("\r\n", "\n").replace("\r", "\n")
  blocks = [match[2] for match in _FENCE.finditer(text)]
  candidates = blocks if "```" in text else [text]
  found = [block for block in candidates if _DEFINITION.search(block)]
  if not found:
    raise Stop(Status.NO_KERNEL, "no code block defines a function `solve`")
  if len(found[-1]) > MAX_CHARACTERS:
    raise _refuse(
      f"{len(found[-1])} characters; at most {MAX_CHARACTERS} are allowed"
    )
  return found[-1]


def check(source: str) -> None:
  """Refuses imports of anything but MODULES.

  A courtesy with a clear message: what keeps a candidate from files, network
  and other processes is its sandbox. A text that is no Python passes: the
  compiler will say so.

  Raises:
    Stop: CONTRACT_VIOLATION.
  """
  try:
    with warnings.catch_warnings(action="ignore"):
      tree = ast.parse(source)
  except (SyntaxError, ValueError, RecursionError, MemoryError):
    return
  for node in ast.walk(tree):
    names = []
    if isinstance(node, ast.Import):
      names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
      names = [node.module or "."]
    for name in names:
      if name.split(".")[0] not in MODULES:
        raise _refuse(
          f"module `{name}` may not be imported; allowed are "
          f"{', '.join(MODULES)}",
          node.lineno,
        )
