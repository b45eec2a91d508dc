"""The columns of every table: a number of one row under all draws."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from experiments import intervals, time_to_accuracy
from experiments.intervals import Draws
from experiments.records import Record
from experiments.report import TRAINING_STAGES

Runs = Mapping[str, Sequence[Record]]


@dataclasses.dataclass(frozen=True)
class Column:
  """One column. `values(runs, row, draws)` are [B + 1], as shown."""

  key: str  # of paper.REPORTED, and of the CSV
  label: str
  values: Callable[[Runs, str, Draws], np.ndarray]
  digits: int = 1
  # Of a time to accuracy, `time_to_accuracy.gaps_to_target`.
  gaps: Callable[[Runs, str, Draws], float] | None = None


def _totals(runs, row, draws):
  return intervals.heldout_totals(runs[row], -1, draws)


def _accuracy(turn):
  def values(runs, row, draws):
    return 100 * intervals.accuracy(_totals(runs, row, draws), turn)

  return values


def _leap(runs, row):
  return "leap"


def _own_method(runs, row):
  """The row that is a row's method and nothing else: its folder's name."""
  return runs[row][0].result["config"]["method.name"]


def _difference(turn, baseline):
  """Against the row that `baseline(runs, row)` names, on common seeds."""
  of = _accuracy(turn)

  def values(runs, row, draws):
    base = baseline(runs, row)
    common = {r.seed for r in runs[row]} & {r.seed for r in runs.get(base, ())}
    if row == base or not common:
      return np.full(len(draws.by_seed), np.nan)
    both = {
      name: [r for r in runs[name] if r.seed in common] for name in (row, base)
    }
    return of(both, row, draws) - of(both, base, draws)

  return values


def _of_run(pick, scale=1.0):
  def values(runs, row, draws):
    numbers = [pick(record) for record in runs[row]]
    return scale * intervals.mean_over_seeds(runs[row], numbers, draws)

  return values


EARLY = 4
"""Iterations in which a method that learns fast learns most."""


def _metric(name, scale=1.0, among=None):
  """Mean over a run's iterations, the first `among` of them; those that do not
  have it are left out."""

  def pick(record):
    found = [line[name] for line in record.metrics[:among] if name in line]
    return float(np.mean(found)) if found else None

  return _of_run(pick, scale)


def _early_seconds(record):
  """Of one of the first `EARLY` iterations, without compilation."""
  lines = record.metrics[:EARLY]
  names = {"seconds/total", "compile/seconds"}
  if not all(names <= set(line) for line in lines):
    return None
  return float(
    np.mean([x["seconds/total"] - x["compile/seconds"] for x in lines])
  )


def step_seconds(record: Record) -> float:
  """Seconds of an iteration: training over iterations, no compilation."""
  iterations = max(record.result["run"]["iterations"], 1)
  return record.evaluations[-1]["seconds"] / iterations


def stage_seconds(record: Record, stage: str) -> float:
  """Seconds of a stage of an iteration.

  `other` is what the three leave of it. The run's own record of that stage
  holds what was compiled on the way as well, which is no training.
  """
  if stage == "other":
    three = sum(
      stage_seconds(record, s) for s in TRAINING_STAGES if s != "other"
    )
    return step_seconds(record) - three
  seconds = record.result["run"]["seconds"].get(stage, 0.0)
  return seconds / max(record.result["run"]["iterations"], 1)


def _per_iteration(stage):
  return _of_run(lambda record: stage_seconds(record, stage))


def _zero_advantage(record):
  kept = sum(line["update/rows"] for line in record.metrics)
  dropped = sum(line["update/rows_dropped"] for line in record.metrics)
  return dropped / (kept + dropped) if kept + dropped else None


def _pass_at_most(record):
  after = record.result["after"]
  ks = [int(key.removeprefix("pass_at_")) for key in after if "pass_at_" in key]
  return after[f"pass_at_{max(ks)}"] if ks else None


def _sooner(baseline, turn, gain):
  def values(runs, row, draws):
    if not runs.get(baseline):
      return np.full(len(draws.by_seed), np.nan)
    return time_to_accuracy.compare(
      runs[baseline], runs[row], turn, gain, draws
    )

  return values


def _gaps(baseline, turn, gain):
  def gaps(runs, row, draws):
    if not runs.get(baseline) or row == baseline:
      return np.nan
    return time_to_accuracy.gaps_to_target(
      runs[baseline], runs[row], turn, gain, draws
    )

  return gaps


def _times(ending, target):
  """Times as fast as each baseline to a share of its gain."""
  gain = time_to_accuracy.GAINS[ending]
  return [
    Column(
      f"time_to_acc{turn}_ratio_vs_{short}{ending}",
      f"times as fast to {target.format(short.replace('_', '-'))} Acc@{turn}",
      _sooner(baseline, turn, gain),
      2,
      _gaps(baseline, turn, gain),
    )
    for turn in (1, 3)
    for baseline, short in (
      ("grpo_multi_turn", "multi_turn"),
      ("grpo_single_turn", "single_turn"),
    )
  ]


_ACC = {
  t: Column(f"acc_at_{t}", f"Acc@{t}, %", _accuracy(t)) for t in (1, 2, 3)
}
_DIFFERENCES = tuple(
  Column(f"acc_at_{t}_minus_leap", f"Acc@{t} - LEAP's", _difference(t, _leap))
  for t in (1, 3)
)
_RECOVERY = Column(
  "recovery_rate",
  "recovery, %",
  lambda runs, row, draws: 100 * intervals.recovery(_totals(runs, row, draws)),
)
_TURNS = Column(
  "turns_per_pass",
  "turns per pass",
  lambda runs, row, draws: intervals.turns_per_pass(_totals(runs, row, draws)),
  2,
)


def _with_random_feedback(rate):
  """A rate of the control, over the runs that have one."""

  def values(runs, row, draws):
    controls = [
      dataclasses.replace(record, evaluations=record.control)
      for record in runs[row]
      if record.control
    ]
    if not controls:
      return np.full(len(draws.by_seed), np.nan)
    return 100 * rate(intervals.heldout_totals(controls, -1, draws))

  return values


def _lost_without_feedback(runs, row, draws):
  """Recovery with the true feedback minus recovery with a random one."""
  both = {row: [record for record in runs[row] if record.control]}
  if not both[row]:
    return np.full(len(draws.by_seed), np.nan)
  true = 100 * intervals.recovery(_totals(both, row, draws))
  return true - _with_random_feedback(intervals.recovery)(both, row, draws)


_ACTIVATION = Column(
  "activation",
  "groups debugged, %",
  _of_run(lambda record: record.result["run"]["activation"], 100),
)
_RECOVERED = Column(
  "recovered",
  "debugged failures that were solved, %",
  _metric("rollout/recovery_rate", 100),
)
_COST = (
  Column(
    "training_seconds",
    "training, s",
    _of_run(lambda record: record.evaluations[-1]["seconds"]),
    0,
  ),
  Column(
    "training_tokens",
    "tokens, thousands",
    _of_run(lambda record: record.evaluations[-1]["tokens"], 1e-3),
    0,
  ),
  Column(
    "training_harness_calls",
    "harness calls",
    _of_run(lambda record: record.evaluations[-1]["harness_calls"]),
    0,
  ),
)
_ZERO = Column(
  "zero_advantage", "rows without advantage, %", _of_run(_zero_advantage, 100)
)

_TIMES = (
  *_times("", "{}'s best"),
  *_times("_at_90_percent", "90 % of {}'s gain in"),
)

_OF_GATES = (
  _ACC[1],
  _ACC[3],
  _ACTIVATION,
  _RECOVERED,
  _RECOVERY,
  *_DIFFERENCES,
  *_COST,
)

OF_ANY_EVALUATION = (
  *(f"acc_at_{t}" for t in _ACC),
  "recovery_rate",
  "turns_per_pass",
)
"""Columns that need nothing but a held-out evaluation."""

_STAGES = (
  Column("step_seconds", "iteration, s", _of_run(step_seconds), 2),
  Column("sample_seconds", "sample, s", _per_iteration("sample"), 2),
  Column("harness_seconds", "harness, s", _per_iteration("harness"), 2),
  Column("update_seconds", "update, s", _per_iteration("update"), 2),
  Column("other_seconds", "other, s", _per_iteration("other"), 2),
)
_SPREAD = Column(
  "spread_groups", "groups that teach", _metric("rollout/spread_groups")
)

COLUMNS: dict[str, tuple[Column, ...]] = {
  "main": (
    *_ACC.values(),
    Column("pass_at_most", "pass@k, %, largest k", _of_run(_pass_at_most, 100)),
    _RECOVERY,
    _TURNS,
    *_DIFFERENCES,
    *_COST,
  ),
  "cost": (
    *_STAGES,
    *_COST[1:],
    _ACTIVATION,
  ),
  "headline": (
    *_STAGES,
    Column("idle", "idle accelerator, %", _metric("idle/accelerator", 100)),
    _SPREAD,
    _ACTIVATION,
    *_COST[1:],
    Column(
      "early_seconds",
      f"first {EARLY}: iteration, s",
      _of_run(_early_seconds),
      2,
    ),
    Column(
      "early_spread",
      f"first {EARLY}: groups that teach",
      _metric("rollout/spread_groups", among=EARLY),
    ),
    Column(
      "early_activation",
      f"first {EARLY}: groups debugged, %",
      _metric("rollout/activation", 100, EARLY),
    ),
  ),
  "time": _TIMES,
  "feedback": (
    *_ACC.values(),
    Column(
      "acc_at_3_random",
      "Acc@3 with random feedback, %",
      _with_random_feedback(lambda totals: intervals.accuracy(totals, 3)),
    ),
    _RECOVERY,
    Column(
      "recovery_random",
      "recovery with random feedback, %",
      _with_random_feedback(intervals.recovery),
    ),
    Column("recovery_due", "due to feedback", _lost_without_feedback),
    *_COST,
  ),
  "dcp": _OF_GATES,
  "smoothing": _OF_GATES,
  "reward": (_ACC[1], _ACC[3], _RECOVERY, _ZERO, *_DIFFERENCES, *_COST),
  "credit": (_ACC[1], _ACC[3], _RECOVERY, _TURNS, *_DIFFERENCES, *_COST),
  "learning_rate": (_ACC[1], _ACC[3], _RECOVERY, *_DIFFERENCES, *_COST),
  "stability": (
    _ACC[1],
    _ACC[3],
    Column("entropy", "entropy, nats", _metric("update/entropy"), 3),
    Column("grad_norm", "gradient norm", _metric("update/grad_norm"), 3),
    Column(
      "log_ratio",
      "log ratio to the sampler, mean size, 1e-6 nats",
      _metric("update/log_ratio_mean", 1e6),
    ),
    Column("clipped", "clipped, %", _metric("update/clip_fraction", 100), 2),
    Column("rejected", "rejected, %", _metric("update/rejected", 100), 2),
    Column("cut", "answers cut, %", _metric("rollout/truncated_fraction", 100)),
    Column(
      "junk",
      "other failures, %",
      _metric("kernels/other_failure", 100),
    ),
    *_DIFFERENCES,
    *_COST,
  ),
  "sampling": (
    _ACC[1],
    _ACC[3],
    _SPREAD,
    *(
      Column(
        f"acc_at_{t}_minus_uniform",
        f"Acc@{t} - uniform draw's",
        _difference(t, _own_method),
      )
      for t in (1, 3)
    ),
    *_COST,
  ),
}
