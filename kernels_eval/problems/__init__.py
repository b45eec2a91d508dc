"""All problems, by name."""

import difflib

from kernels_eval.problems import (
  attention,
  broadcasting,
  composer,
  elementwise,
  linear_algebra,
  losses,
  low_precision,
  movement,
  normalization,
  reductions,
  scans,
  stencils,
)
from kernels_eval.problems.spec import Problem

_MODULES = (  # roughly from easy to hard
  elementwise,
  broadcasting,
  low_precision,
  movement,
  reductions,
  normalization,
  scans,
  stencils,
  losses,
  linear_algebra,
  attention,
)
FAMILIES = {p.name: p for module in _MODULES for p in module.PROBLEMS}


class UnknownProblem(KeyError):
  """No problem has this name."""

  def __str__(self):
    return self.args[0]


def get(name: str) -> Problem:
  """The problem of this name.

  Raises:
    UnknownProblem: with the nearest names.
  """
  if name in FAMILIES:
    return FAMILIES[name]
  if name.startswith(composer.PREFIX):
    try:
      return composer.compose(name)
    except composer.CompositionError as error:
      raise UnknownProblem(f"no problem `{name}`: {error}") from None
  near = difflib.get_close_matches(name, FAMILIES, n=3, cutoff=0.4)
  hint = f"; nearest: {', '.join(near)}" if near else ""
  raise UnknownProblem(
    f"no problem `{name}`{hint} (`python -m kernels_eval list` shows all)"
  )
