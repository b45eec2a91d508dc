"""How much sooner a method reaches what a baseline has learnt.

Time is training alone: no held-out evaluation, no compilation. The paper leaves
open whether its baseline is unpruned multi-turn or single-turn training, and
whether the accuracy is that of the first turn: all four are computed.

    target = start + q * (best - start)

start and best are of the baseline's smoothed curve. q = 1 is the headline: its
maximum. Where the curve ends in a plateau the noise decides when that is
reached, late for the baseline by construction and early or never for the
method, so that two runs of one and the same method differ by a quarter; q = .9
stands beside it, and is the sounder one.

A curve is smoothed over a share of what training had used: at a cost c from
(1 - s) c to (1 + s) c, s = .15. Curves that differ in pace alone, a(c) and
a(k c), stay so, whence what smoothing rounds off leaves their ratio as it is;
and it is one curve whatever it is compared with. (The same seconds for all
rounded off the faster one more: a true 2 read 1.7 to 1.9.) Between evaluations
it is a monotone cubic: straight lines would reach the target of a curve that
flattens late, and later where evaluations are rarer.

What simulated runs show at q = .9 (48 problems, 8 samples, 3 seeds of sd .02;
plateaus and S-shapes; true ratios 1, 1.5, 2, 3; evaluations equally or
unequally often): the median is within 5 % of the truth and the 95 % interval
holds it in 85 to 99 of 100 cases, if both rows take at least `MIN_GAPS` longest
gaps between evaluations to the target. Below that a rise as short as one gap is
misplaced, by up to 10 % of the ratio from two gaps on, by up to 21 % below
(LOG.md). With one seed the interval knows the problems alone, and holds the
truth in 60 to 80 of 100 cases. At q = 1, with rows that end on one and the same
plateau: 35 to 45 of 100 methods "never" get there, a ratio of 2 reads 0 to 3,
and the interval, as wide, holds the truth in 87 to 95 of 100 cases.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from experiments import intervals, monotone_cubic
from experiments.intervals import Draws
from experiments.records import Record

COSTS = ("seconds", "tokens", "harness_calls")

GAINS = {"": 1.0, "_at_95_percent": 0.95, "_at_90_percent": 0.9}
"""q, by what the name of a ratio ends in. The first is the headline."""

SHARE = 0.15
"""s: of what training had used, to either side, over which is smoothed."""

MIN_GAPS = 4.0
"""Gaps between evaluations to the target from which on ratios are sound."""

COARSE = (
  f"a target that is reached less than {MIN_GAPS:g} gaps between evaluations "
  "after the start makes a ratio that may be off by more than 5 %; evaluate "
  "more often (config.eval.every) or make iterations smaller"
)
"""What to say of comparisons with fewer than `MIN_GAPS` gaps."""

_LEAST_GAIN = 1e-9
"""Of a curve that rises at all; smoothing rounds."""

_NUM_POINTS = 481
"""Costs at which a curve is known."""


class Curve(NamedTuple):
  """A method's held-out accuracy over what training had used. K costs."""

  cost: np.ndarray  # [K] ascending
  accuracy: np.ndarray  # [B + 1, K], mean over seeds


def costs(record: Record, cost: str) -> np.ndarray:
  """[E] of COSTS at each held-out evaluation of a run."""
  return np.asarray([e[cost] for e in record.evaluations], float)


def longest_gap(
  records: Iterable[Record], cost: str, until: float = np.inf
) -> float:
  """The most that any of the runs used between two evaluations.

  Args:
    records: of one row.
    cost: of COSTS.
    until: gaps that begin at this cost or later do not count.
  """
  gaps = []
  for record in records:
    own = costs(record, cost)
    gaps.append(np.diff(own)[own[:-1] < until].max(initial=0))
  return float(max(gaps))


def curve(
  records: Sequence[Record], turn: int, cost: str, draws: Draws
) -> Curve:
  """Acc@turn over a cost, averaged over seeds at each cost; not smoothed.

  Seeds are evaluated at different costs: each one's curve is a monotone cubic
  through its own evaluations. Their mean ends where the first of them does.

  Args:
    records: of one row.
    turn: of Acc@turn.
    cost: of COSTS.
    draws: weights.
  """
  own_costs = [costs(record, cost) for record in records]
  first = max(own[0] for own in own_costs)
  last = min(own[-1] for own in own_costs)
  grid = np.linspace(first, last, _NUM_POINTS)
  total, weight = 0.0, 0.0
  for record, own_cost in zip(records, own_costs, strict=True):
    # Of evaluations between which nothing was used, one counts: the last.
    places = np.flatnonzero(np.diff(own_cost, append=np.inf) > 0)
    accuracy = np.stack(
      [
        intervals.accuracy(intervals.problem_totals(record, i, draws), turn)
        for i in places
      ],
      -1,
    )
    own = monotone_cubic.interpolate(own_cost[places], accuracy, grid)
    seed = draws.by_seed[:, draws.seeds.index(record.seed), None]
    total = total + seed * own
    weight = weight + seed
  with np.errstate(invalid="ignore", divide="ignore"):
    return Curve(grid, total / weight)


def _at(curve: Curve, where: np.ndarray) -> np.ndarray:
  """[B + 1, len(where)] values, straight between those that are known."""
  right = np.clip(
    np.searchsorted(curve.cost, where, "right"), 1, len(curve.cost) - 1
  )
  start, end = curve.cost[right - 1], curve.cost[right]
  part = (where - start) / np.where(end > start, end - start, 1.0)
  values = curve.accuracy
  return (1 - part) * values[:, right - 1] + part * values[:, right]


def smooth(curve: Curve) -> Curve:
  """Means over costs up to `SHARE` of the cost away, as far to the one side as
  to the other: less towards the end, where nothing is averaged. A straight line
  stays as it is.

  Args:
    curve: of `curve`.
  """
  grid, values = curve
  steps = (values[:, 1:] + values[:, :-1]) / 2 * np.diff(grid)
  area = Curve(grid, np.pad(np.cumsum(steps, 1), ((0, 0), (1, 0))))
  width = np.minimum(SHARE * (grid - grid[0]), grid[-1] - grid)
  inner = width > 0
  low, high = (_at(area, (grid + sign * width)[inner]) for sign in (-1, 1))
  values = values.copy()
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


def times(
  baseline: Curve, method: Curve, gain: float
) -> tuple[np.ndarray, np.ndarray]:
  """What the two of them use to the target.

  Args:
    baseline: sets the target.
    method: over the same cost.
    gain: q, the share of the baseline's gain that is to be reached.

  Returns:
    [B + 1] of the baseline and of the method. Infinity: never. NaN: the
    baseline never rises above its begin, there is nothing to reach.
  """
  own, other = [], []
  for own_curve, other_curve in zip(
    baseline.accuracy, method.accuracy, strict=True
  ):
    start, best = own_curve[0], own_curve.max()
    if not best - start > _LEAST_GAIN:
      own.append(np.nan)
      other.append(np.nan)
      continue
    # At q = 1 rounding must not lift the target above every value.
    target = min(start + gain * (best - start), best)
    own.append(first_reached(baseline.cost, own_curve, target))
    other.append(first_reached(method.cost, other_curve, target))
  return np.asarray(own), np.asarray(other)


def ratios(baseline: Curve, method: Curve, gain: float) -> np.ndarray:
  """[B + 1] times as fast as the baseline to the target.

      ratio = cost of the baseline / cost of the method

  0 where the method never gets there. NaN where there is nothing to reach, and
  where the method is there before any training: such draws, the best ones for
  the method, are left out of the interval, which is the more cautious for it.

  Args:
    baseline: smoothed; sets the target.
    method: smoothed, over the same cost.
    gain: of `times`.
  """
  own, other = times(baseline, method, gain)
  # A comparison with NaN is false.
  return np.where(other > 0, own / np.where(other > 0, other, 1.0), np.nan)


def compare(
  baseline: Sequence[Record],
  method: Sequence[Record],
  turn: int,
  gain: float,
  draws: Draws,
  cost: str = "seconds",
) -> np.ndarray:
  """`ratios` of two rows.

  Args:
    baseline: runs of one row.
    method: runs of the other.
    turn: of Acc@turn.
    gain: of `ratios`.
    draws: weights.
    cost: of COSTS.
  """
  one, other = (
    smooth(curve(records, turn, cost, draws)) for records in (baseline, method)
  )
  return ratios(one, other, gain)


def gaps_to_target(
  baseline: Sequence[Record],
  method: Sequence[Record],
  turn: int,
  gain: float,
  draws: Draws,
  cost: str = "seconds",
) -> float:
  """Times to the target of `compare` in longest gaps between evaluations before
  it: where these grow with time, later ones say nothing of the target.

  The fewer of the two rows, as estimated; a row that never gets there does not
  count, nor one that is there from the start. NaN: none counts, or there is
  nothing to reach. Below `MIN_GAPS` the
  ratio is not to be trusted to 5 %.

  Args:
    baseline: runs of one row.
    method: runs of the other.
    turn: of Acc@turn.
    gain: of `compare`.
    draws: weights.
    cost: of COSTS.
  """
  estimate = intervals.without_spread(draws)
  rows = (baseline, method)
  found = times(
    *(smooth(curve(records, turn, cost, estimate)) for records in rows), gain
  )
  gaps = [
    float(used[0]) / longest_gap(records, cost, float(used[0]))
    for records, used in zip(rows, found, strict=True)
    if 0 < used[0] < np.inf
  ]
  return min(gaps, default=np.nan)
