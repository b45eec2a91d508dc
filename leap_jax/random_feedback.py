"""The control of RLEF: does a repair use what the policy is told?

Verdicts count as they are; what a failed answer is told is the verdict on a
failed answer to another problem (RLEF, arXiv 2410.02089, section on random
feedback). A policy that reads its feedback loses what it repairs by it; one
that only tries again does not.
"""

import collections
import dataclasses
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from kernels_eval.schema import Evaluation

Tell = Callable[[Sequence[Evaluation]], list[Evaluation]]
"""Verdicts of a whole turn, row by row, to what the rows are told."""

NOBODY = -1
"""Instead of a donor: there is none of another problem."""


@dataclasses.dataclass
class Told:
  """How many failed answers got which feedback.

  All that fail are counted: those of the last turn as well, which nobody is
  told of, and those of problems that fill up a batch.
  """

  failed: int = 0
  own_problem: int = 0  # of them: nobody had failed at another problem yet


def donors(problems: Sequence[str], rng: np.random.Generator) -> np.ndarray:
  """For each failed answer the one whose feedback it gets.

  A permutation without fixed problems, unless more than half of the answers
  are of one problem: then some donors give twice. `NOBODY` where all answers
  are of one problem.

  Args:
    problems: of the failed answers.
    rng: of the draw.

  Returns:
    [len(problems)] indices.
  """
  n = len(problems)
  names = np.asarray(problems, str)
  order = rng.permutation(n)
  # Problem by problem, each in drawn order; then everyone looks past the
  # largest of them.
  order = order[np.argsort(names[order], kind="stable")]
  largest = max(collections.Counter(problems).values(), default=0)
  out = np.empty(n, int)
  out[order] = np.roll(order, -largest)
  for i in np.flatnonzero(names[out] == names):
    others = np.flatnonzero(names != names[i])
    out[i] = rng.choice(others) if len(others) else NOBODY
  return out


def swapped(seed: int, told: Told) -> Tell:
  """Failed answers get one another's verdicts, a whole turn at a time.

  Which answers are right, and which the harness lost, stays as it is. For
  evaluation alone: status and findings of a failed answer are another one's.
  Where a turn has failed answers to one problem alone, the latest verdict of
  an earlier turn on another problem takes their place; where there never was
  one, the own verdict stays.

  Args:
    seed: of the draws; the n-th turn makes the n-th of them, whatever calls
      of the harness it took.
    told: is counted up.
  """
  turns = 0
  latest: dict[str, Evaluation] = {}  # by problem: a failed answer to it

  def tell(verdicts):
    nonlocal turns
    rng = np.random.default_rng((seed, turns))
    turns += 1
    failed = [i for i, e in enumerate(verdicts) if e.counts and not e.passed]
    given = donors([verdicts[i].problem for i in failed], rng)
    out = list(verdicts)
    for i, place in zip(failed, given, strict=True):
      own = verdicts[i]
      earlier = [e for name, e in latest.items() if name != own.problem]
      if place != NOBODY:
        other = verdicts[failed[place]]
      elif earlier:
        other = earlier[rng.integers(len(earlier))]
      else:
        other = own
        told.own_problem += 1
      told.failed += 1
      out[i] = msgspec.structs.replace(other, id=own.id, problem=own.problem)
    latest.update((verdicts[i].problem, verdicts[i]) for i in failed)
    return out

  return tell
