"""After which iterations a run is evaluated on held-out problems."""

import math


def is_due(iteration: int, every: int, growth: float) -> bool:
  """Whether an evaluation follows an iteration.

      next = first multiple of every >= max(last + every, last * (1 + growth))

  beginning from 0. With a growth evaluations are dense where training has just
  begun, where a curve rises within few iterations, and sparse later, where
  they would cost more than training: their number grows as a logarithm. What a
  curve over time needs is gaps that are short beside the time itself
  (experiments/time_to_accuracy.py). Iterations decide and not seconds: a run
  that is done again is evaluated at the same places.

  Args:
    iteration: how many have been done, from 1.
    every: config.eval.every; 0 = never.
    growth: config.eval.growth, at least 0.
  """
  if every == 0:
    return False
  place = 0
  while place < iteration:
    place = max(place + every, _multiple(place * (1 + growth), every))
  return place == iteration


def _multiple(least: float, of: int) -> int:
  """The first multiple that is not below, but for rounding."""
  return math.ceil(round(least / of, 9)) * of
