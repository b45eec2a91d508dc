"""How much sooner a method reaches what a baseline has learnt.

Time is training alone: no held-out evaluation, no compilation. The paper leaves
open whether its baseline is unpruned multi-turn or single-turn training, and
whether the accuracy is that of the first turn: all four are computed.

    target = start + q * (best - start)

start and best are of the baseline's smoothed curve. All curves of a comparison
are smoothed over the same stretch of cost, to both sides: a mean of the last
few evaluations lags behind by one evaluation, and the one method is evaluated
every 20 s where the other is every 40 s. (What is left: the same stretch rounds
off a faster curve more; a true 1.5 reads 1.4 to 1.5.) With q = 1 the target is
its maximum: on a plateau the noise decides when that is reached, late for the
baseline by construction and early or never for the method, so that two runs of
one and the same method differ by a quarter. q = .9 is the headline.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from experiments import intervals
from experiments.intervals import Draws
from experiments.records import Record

COSTS = ("seconds", "tokens", "harness_calls")

GAIN = 0.9
"""q of the headline."""


_NUM_POINTS = 241
"""Costs at which a smoothed curve is known."""


class Curve(NamedTuple):
  """A method's held-out accuracy over what training had used. K costs."""

  cost: np.ndarray  # [K] ascending
  accuracy: np.ndarray  # [B + 1, K], mean over seeds


def costs(record: Record, cost: str) -> np.ndarray:
  """[E] of COSTS at each held-out evaluation of a run."""
  return np.asarray([e[cost] for e in record.evaluations], float)


def longest_gap(records: Iterable[Record], cost: str) -> float:
  """The most that any of the runs used between two evaluations."""
  return max(float(np.diff(costs(record, cost)).max()) for record in records)


def curve(
  records: Sequence[Record], turn: int, cost: str, draws: Draws
) -> Curve:
  """Acc@turn over a cost, averaged over seeds at each cost.

  Seeds are evaluated at different costs: each one's curve is a straight line
  between its own evaluations. Their mean is taken at every cost at which any of
  them was evaluated, up to the last one that all of them have reached.

  Args:
    records: of one row.
    turn: of Acc@turn.
    cost: of COSTS.
    draws: weights.
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
    total = total + seed * (accuracy @ share)
    weight = weight + seed
  with np.errstate(invalid="ignore", divide="ignore"):
    return Curve(grid, total / weight)


def _at(curve: Curve, where: np.ndarray) -> np.ndarray:
  """[B + 1, len(where)] values between those that are known."""
  right = np.clip(
    np.searchsorted(curve.cost, where, "right"), 1, len(curve.cost) - 1
  )
  start, end = curve.cost[right - 1], curve.cost[right]
  part = (where - start) / (end - start)
  values = curve.accuracy
  return (1 - part) * values[:, right - 1] + part * values[:, right]


def smooth(curve: Curve, half_width: float) -> Curve:
  """Means over costs up to `half_width` away, as far to the one side as to the
  other: less towards the ends, where nothing is averaged. A straight line stays
  as it is.

  Args:
    curve: straight between its costs.
    half_width: in its cost; the same for all curves that are compared.
  """
  grid = np.linspace(curve.cost[0], curve.cost[-1], _NUM_POINTS)
  values = _at(curve, grid)
  steps = (values[:, 1:] + values[:, :-1]) / 2 * np.diff(grid)
  area = Curve(grid, np.pad(np.cumsum(steps, 1), ((0, 0), (1, 0))))
  width = np.minimum(half_width, np.minimum(grid - grid[0], grid[-1] - grid))
  inner = width > 0
  low, high = (_at(area, (grid + sign * width)[inner]) for sign in (-1, 1))
  values[:, inner] = (high - low) / (2 * width[inner])
  return Curve(grid, values)


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
  found = curve(records, turn, cost, draws)
  assert found.cost[0] <= at <= found.cost[-1], (at, found.cost)
  return _at(found, np.asarray([at]))[:, 0]


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


def compare(
  baseline: Sequence[Record],
  method: Sequence[Record],
  turn: int,
  draws: Draws,
  cost: str = "seconds",
  gain: float = GAIN,
) -> np.ndarray:
  """`ratios` of two rows, smoothed over the longest gap of either.

  Args:
    baseline: runs of one row.
    method: runs of the other.
    turn: of Acc@turn.
    draws: weights.
    cost: of COSTS.
    gain: of `ratios`.
  """
  half_width = longest_gap([*baseline, *method], cost)
  one, other = (
    smooth(curve(records, turn, cost, draws), half_width)
    for records in (baseline, method)
  )
  return ratios(one, other, gain)
