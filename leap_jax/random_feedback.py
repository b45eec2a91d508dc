"""The control of RLEF: does a repair use what the policy is told?

Verdicts count as they are; what a failed answer is told is the verdict on a
failed answer to another problem (RLEF, arXiv 2410.02089, section on random
feedback). A policy that reads its feedback loses what it repairs by it; one
that only tries again does not.
"""

import collections
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from kernels_eval.schema import Evaluation, Request

Evaluate = Callable[[Sequence[Request]], list[Evaluation]]


def donors(problems: Sequence[str], rng: np.random.Generator) -> np.ndarray:
  """For each failed answer the one whose feedback it gets.

  A permutation. No answer gets feedback on its own problem, unless more than
  half of the answers are of one problem: then no more of them than must.

  Args:
    problems: of the failed answers.
    rng: of the draw.

  Returns:
    [len(problems)] indices.
  """
  n = len(problems)
  order = rng.permutation(n)
  # Problem by problem, each in drawn order; then everyone looks past the
  # largest of them.
  order = order[np.argsort(np.asarray(problems)[order], kind="stable")]
  largest = max(collections.Counter(problems).values(), default=0)
  out = np.empty(n, int)
  out[order] = np.roll(order, -largest)
  return out


def shuffled(evaluate: Evaluate, seed: int) -> Evaluate:
  """A harness whose failed answers swap their verdicts' words.

  Which answers are right, and which the harness lost, stays as it is. For
  evaluation alone: status and findings of a failed answer are another one's.

  Args:
    evaluate: the harness.
    seed: of the draws; the n-th call makes the n-th of them.
  """
  calls = 0

  def evaluate_shuffled(requests):
    nonlocal calls
    rng = np.random.default_rng((seed, calls))
    calls += 1
    found = list(evaluate(requests))
    failed = [i for i, e in enumerate(found) if e.counts and not e.passed]
    given = donors([found[i].problem for i in failed], rng)
    out = list(found)
    for i, donor in zip(failed, given, strict=True):
      own = found[i]
      out[i] = msgspec.structs.replace(
        found[failed[donor]], id=own.id, problem=own.problem
      )
    return out

  return evaluate_shuffled
