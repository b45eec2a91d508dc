"""Intervals by a paired bootstrap over held-out problems and seeds.

A draw gives every problem and every seed a weight: how often it was drawn, with
replacement. All rows of a table share the draws, so that a difference of two
rows is one of the same problems and seeds. Draw 0 has weight 1 everywhere: its
value is the estimate, and the others are its spread.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from experiments.records import Record

NUM_DRAWS = 2000
_SEED = 20260803  # of the draws: the same table each time


class Draws(NamedTuple):
  """Weights of B + 1 draws."""

  seeds: tuple[int, ...]
  names: tuple[str, ...]  # of problems
  by_seed: np.ndarray  # [B + 1, seeds]
  by_problem: np.ndarray  # [B + 1, problems]


class Estimate(NamedTuple):
  """A number and its 95 % interval; NaN where there is none."""

  value: float
  low: float
  high: float


def draw(
  runs: Mapping[str, Sequence[Record]], num_draws: int = NUM_DRAWS
) -> Draws:
  """Draws over all seeds and held-out problems of some runs."""
  every = [record for records in runs.values() for record in records]
  seeds = tuple(sorted({record.seed for record in every}))
  names = tuple(
    sorted({n for r in every for e in r.evaluations for n in e["problems"]})
  )
  rng = np.random.default_rng(_SEED)

  def weights(size):
    drawn = rng.multinomial(size, np.full(size, 1 / size), num_draws)
    return np.concatenate([np.ones((1, size)), drawn])

  return Draws(seeds, names, weights(len(seeds)), weights(len(names)))


HELD = {2: 49, 3: 75, 4: 80, 5: 84}
"""Of 100 intervals of a mean over so many seeds those that hold the truth,
where all that differs are seeds (normal; simulated). A bootstrap of few numbers
does not leave their range."""


def told_of_seeds(draws: Draws) -> str:
  """Words on how far few seeds make intervals too narrow; "" for many."""
  number = len(draws.seeds)
  if number == 1:
    return "one seed: intervals are of the problems alone, too narrow"
  if number not in HELD:
    return ""
  return (
    f"{number} seeds: where results differ by seed more than by problem, an "
    f"interval holds the truth in about {HELD[number]} of 100 cases, not 95"
  )


def without_spread(draws: Draws) -> Draws:
  """Draw 0 alone: what is estimated."""
  return draws._replace(
    by_seed=draws.by_seed[:1], by_problem=draws.by_problem[:1]
  )


def estimate(values: np.ndarray) -> Estimate:
  """The estimate and its interval from the values of all draws.

  A draw without a value (its seeds were not run, or it has nothing to divide
  by) is left out of the interval.
  """
  spread = values[1:][np.isfinite(values[1:])]
  if not np.isfinite(values[0]) or not len(spread):
    return Estimate(float(values[0]), np.nan, np.nan)
  low, high = np.percentile(spread, [2.5, 97.5])
  return Estimate(float(values[0]), float(low), float(high))


def _seed_weights(records, draws):
  """[B + 1, S] of the seeds of these runs."""
  return draws.by_seed[:, [draws.seeds.index(r.seed) for r in records]]


def mean_over_seeds(
  records: Sequence[Record], values: Sequence[float | None], draws: Draws
) -> np.ndarray:
  """[B + 1] weighted means of one number a run; runs without one are left out.

  NaN where nothing is left.
  """
  have = [i for i, value in enumerate(values) if value is not None]
  if not have:
    return np.full(len(draws.by_seed), np.nan)
  weights = _seed_weights([records[i] for i in have], draws)
  numbers = np.asarray([values[i] for i in have], float)
  with np.errstate(invalid="ignore"):
    return weights @ numbers / weights.sum(-1)


def problem_totals(record: Record, index: int, draws: Draws) -> np.ndarray:
  """[B + 1, T + 2] sums of one run's counts, weighted by problem.

  Args:
    record: the run.
    index: which evaluation; -1 = the last.
    draws: weights.

  Returns:
    Samples solved at turn 1..T, not solved, and turns used.
  """
  place = {name: i for i, name in enumerate(draws.names)}
  found = record.evaluations[index]["problems"]
  counts = np.zeros((len(draws.names), len(next(iter(found.values())))))
  for name, values in found.items():
    counts[place[name]] = values
  return draws.by_problem @ counts


def heldout_totals(
  records: Sequence[Record], index: int, draws: Draws
) -> np.ndarray:
  """[B + 1, T + 2] `problem_totals` of one row's runs, weighted by seed.

  Args:
    records: of one row.
    index: which evaluation of each run; -1 = the last.
    draws: weights.
  """
  weights = _seed_weights(records, draws)
  by_seed = [problem_totals(record, index, draws) for record in records]
  return np.einsum("bs,sbj->bj", weights, np.stack(by_seed))


def accuracy(totals: np.ndarray, turn: int) -> np.ndarray:
  """Acc@turn of totals [..., T + 2]: samples solved by that turn.

  NaN if there is no such turn.
  """
  if turn > totals.shape[-1] - 2:
    return np.full(totals.shape[:-1], np.nan)
  with np.errstate(invalid="ignore"):
    return totals[..., :turn].sum(-1) / totals[..., :-1].sum(-1)


def recovery(totals: np.ndarray) -> np.ndarray:
  """First-turn failures that a later turn solved."""
  failed = totals[..., 1:-1].sum(-1)
  with np.errstate(invalid="ignore", divide="ignore"):
    return totals[..., 1:-2].sum(-1) / failed


def turns_per_pass(totals: np.ndarray) -> np.ndarray:
  """Turns used over samples solved."""
  with np.errstate(invalid="ignore", divide="ignore"):
    return totals[..., -1] / totals[..., :-2].sum(-1)
