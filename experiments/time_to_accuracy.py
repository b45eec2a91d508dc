"""How much sooner a method reaches what a baseline has learnt.

Time is training alone: no held-out evaluation, no compilation. The paper leaves
open whether its baseline is unpruned multi-turn or single-turn training, and
whether the accuracy is that of the first turn: all four are computed.

    target = start + q * (best - start)

start and best are of the baseline's smoothed curve. With q = 1 the target is
its maximum: on a plateau the noise decides when that is reached, late for the
baseline by construction and early or never for the method, so that two runs of
one and the same method differ by a quarter. q = .9 is the headline.
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

GAIN = 0.9
"""q of the headline."""


class Curve(NamedTuple):
  """A method's held-out accuracy over what training had used. K costs."""

  cost: np.ndarray  # [K] ascending
  accuracy: np.ndarray  # [B + 1, K], mean over seeds


def smooth(values: np.ndarray) -> np.ndarray:
  """Running mean along the last axis; fewer values at its begin."""
  columns = [
    values[..., max(0, i - SMOOTHING + 1) : i + 1].mean(-1)
    for i in range(values.shape[-1])
  ]
  return np.stack(columns, -1)


def costs(record: Record, cost: str) -> np.ndarray:
  """[E] of COSTS at each held-out evaluation of a run."""
  return np.asarray([e[cost] for e in record.evaluations], float)


def curve(
  records: Sequence[Record],
  turn: int,
  cost: str,
  draws: Draws,
  smoothing=smooth,
) -> Curve:
  """Acc@turn over a cost, averaged over seeds at each cost.

  Seeds are evaluated at different costs: each one's curve is smoothed over its
  own evaluations and is a straight line between them. Their mean is taken at
  every cost at which any of them was evaluated, up to the last one that all of
  them have reached.

  Args:
    records: of one row.
    turn: of Acc@turn.
    cost: of COSTS.
    draws: weights.
    smoothing: of one seed's accuracies, [B + 1, E] to the same.
  """
  own_costs = [costs(record, cost) for record in records]
  first = max(own[0] for own in own_costs)
  last = min(own[-1] for own in own_costs)
  grid = np.unique(np.concatenate([[first, last], *own_costs]))
  grid = grid[(grid >= first) & (grid <= last)]
  total, weight = 0.0, 0.0
  for record, own_cost in zip(records, own_costs, strict=True):
    accuracy = np.stack(
      [
        intervals.accuracy(intervals.problem_totals(record, i, draws), turn)
        for i in range(len(own_cost))
      ],
      -1,
    )
    # What each evaluation counts at each cost of the grid.
    share = np.stack(
      [np.interp(grid, own_cost, one) for one in np.eye(len(own_cost))]
    )
    seed = draws.by_seed[:, draws.seeds.index(record.seed), None]
    total = total + seed * (smoothing(accuracy) @ share)
    weight = weight + seed
  with np.errstate(invalid="ignore", divide="ignore"):
    return Curve(grid, total / weight)


def accuracy_at(
  records: Sequence[Record], turn: int, cost: str, at: float, draws: Draws
) -> np.ndarray:
  """[B + 1] Acc@turn where training had used so much; not smoothed.

  Args:
    records: of one row, all of which have come so far.
    turn: of Acc@turn.
    cost: of COSTS.
    at: how much of it.
    draws: weights.
  """
  found = curve(records, turn, cost, draws, smoothing=lambda values: values)
  assert found.cost[0] <= at <= found.cost[-1], (at, found.cost)
  return np.asarray(
    [np.interp(at, found.cost, values) for values in found.accuracy]
  )


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


def ratios(baseline: Curve, method: Curve, gain: float = GAIN) -> np.ndarray:
  """[B + 1] times as fast as the baseline to the target.

      ratio = cost of the baseline / cost of the method

  0 where the method never gets there. NaN where the baseline never rises above
  its begin (there is nothing to reach), and where the method is there before
  any training: such draws, the best ones for the method, are left out of the
  interval, which is the more cautious for it.

  Args:
    baseline: sets the target.
    method: over the same cost.
    gain: q, the share of the baseline's gain that is to be reached.
  """
  out = []
  for own_curve, other_curve in zip(
    baseline.accuracy, method.accuracy, strict=True
  ):
    start, best = own_curve[0], own_curve.max()
    if not best > start:
      out.append(np.nan)
      continue
    # At q = 1 rounding must not lift the target above every value.
    target = min(start + gain * (best - start), best)
    own = first_reached(baseline.cost, own_curve, target)
    other = first_reached(method.cost, other_curve, target)
    out.append(own / other if other > 0 else np.nan)
  return np.asarray(out)


def ratio(
  baseline: Sequence[Record],
  method: Sequence[Record],
  turn: int,
  draws: Draws,
  cost: str = "seconds",
  gain: float = GAIN,
) -> Estimate:
  """`ratios` with its interval."""
  one, other = (curve(r, turn, cost, draws) for r in (baseline, method))
  return intervals.estimate(ratios(one, other, gain))
