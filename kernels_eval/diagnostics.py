"""What a compiler says again and again, said once."""

from collections.abc import Iterable

import msgspec

from kernels_eval.schema import Diagnostic

_MAX_ALSO = 16  # further lines that a diagnostic keeps


def merge(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
  """Diagnostics of one severity and message become one, at the first place;
  `also_lines` are the other lines, in their order. Those without a line stay
  apart, since they are about something else."""
  merged: dict[tuple[str, str, bool], Diagnostic] = {}
  lines: dict[tuple[str, str, bool], dict[int, None]] = {}
  for diagnostic in diagnostics:
    key = diagnostic.severity, diagnostic.message, diagnostic.line is None
    first = merged.setdefault(key, diagnostic)
    for line in (diagnostic.line, *diagnostic.also_lines):
      if line is not None and line != first.line:
        lines.setdefault(key, {})[line] = None
  return tuple(
    msgspec.structs.replace(d, also_lines=tuple(lines.get(key, ()))[:_MAX_ALSO])
    for key, d in merged.items()
  )
