"""All problems, by name."""

import difflib

from kernels_eval.problems import elementwise
from kernels_eval.problems.spec import Problem

FAMILIES = {p.name: p for module in (elementwise,) for p in module.PROBLEMS}


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
  near = difflib.get_close_matches(name, FAMILIES, n=3, cutoff=0.4)
  hint = f"; nearest: {', '.join(near)}" if near else ""
  raise UnknownProblem(
    f"no problem `{name}`{hint} (`python -m kernels_eval list` shows all)"
  )
