"""How much sooner a method reaches the best accuracy of a baseline.

Time is training alone: no held-out evaluation, no compilation. The paper leaves
open whether its baseline is unpruned multi-turn or single-turn training, and
whether the accuracy is that of the first turn: all four are computed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from experiments import intervals
from experiments.intervals import Draws, Estimate
from experiments.records import Record

SMOOTHING = 3
"""Evaluations of the running mean, the present one and those before it."""

COSTS = ("seconds", "tokens", "harness_calls")


class Curve(NamedTuple):
  """A method's held-out accuracy over what training had used. E evaluations."""

  cost: np.ndarray  # [B + 1, E], mean over seeds
  accuracy: np.ndarray  # [B + 1, E], smoothed


def smooth(values: np.ndarray) -> np.ndarray:
  """Running mean along the last axis; fewer values at its begin."""
  columns = [
    values[..., max(0, i - SMOOTHING + 1) : i + 1].mean(-1)
    for i in range(values.shape[-1])
  ]
  return np.stack(columns, -1)


def curve(
  records: Sequence[Record], turn: int, cost: str, draws: Draws
) -> Curve:
  """Acc@turn over a cost, averaged over seeds at each evaluation.

  Evaluations that not every seed has are left out.

  Args:
    records: of one row.
    turn: of Acc@turn.
    cost: of COSTS.
    draws: weights.
  """
  num = min(len(record.evaluations) for record in records)
  accuracies, costs = [], []
  for i in range(num):
    totals = intervals.heldout_totals(records, i, draws)
    accuracies.append(intervals.accuracy(totals, turn))
    costs.append(
      intervals.mean_over_seeds(
        records, [r.evaluations[i][cost] for r in records], draws
      )
    )
  return Curve(np.stack(costs, -1), smooth(np.stack(accuracies, -1)))


def first_reached(
  cost: np.ndarray, accuracy: np.ndarray, target: float
) -> float:
  """Cost at which a curve first reaches a value; infinity if never.

  Between evaluations the curve is a straight line.

  Args:
    cost: [E] ascending.
    accuracy: [E].
    target: the value.
  """
  above = np.flatnonzero(accuracy >= target)
  if not len(above):
    return np.inf
  i = int(above[0])
  if i == 0:
    return float(cost[0])
  low, high = accuracy[i - 1], accuracy[i]
  part = (target - low) / (high - low)
  return float(cost[i - 1] + part * (cost[i] - cost[i - 1]))


def ratios(baseline: Curve, method: Curve) -> np.ndarray:
  """[B + 1] times as fast as the baseline to the baseline's best.

      ratio = cost of the baseline / cost of the method

  0 where the method never gets there; NaN where the baseline's best is its
  begin: there is nothing to reach.
  """
  out = []
  for b in range(len(baseline.cost)):
    target = baseline.accuracy[b].max()
    own = first_reached(baseline.cost[b], baseline.accuracy[b], target)
    other = first_reached(method.cost[b], method.accuracy[b], target)
    if own <= 0 or not np.isfinite(target):
      out.append(np.nan)
    else:
      # At once, before any training: as soon as can be told.
      out.append(own / other if other > 0 else np.nan)
  return np.asarray(out)


def ratio(
  baseline: Sequence[Record],
  method: Sequence[Record],
  turn: int,
  draws: Draws,
  cost: str = "seconds",
) -> Estimate:
  """`ratios` with its interval."""
  one, other = (curve(r, turn, cost, draws) for r in (baseline, method))
  return intervals.estimate(ratios(one, other))
