"""The rows of every table: which runs there are, and how they differ.

A row is a change of `config.method`, or a method at another learning rate;
`experiments.sweep` runs it, and `experiments.tables` shows it. Rows of several
tables are run once.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Row:
  """One variant. `name` is its folder."""

  name: str
  label: str
  settings: Mapping[str, Any]  # dotted names to values
  # Dotted names to factors of what the sweep's config has. Powers of two: what
  # is divided again is exactly that.
  factors: Mapping[str, float] = dataclasses.field(default_factory=dict)


def changed(row: Row, settings: Mapping[str, Any]) -> dict[str, Any]:
  """Flat settings as a row has them."""
  scaled = {key: settings[key] * by for key, by in row.factors.items()}
  return {**settings, **row.settings, **scaled}


# Settings that some row changes, as a row has them that does not.
_PARTS = {
  "harness.timing": False,
  "method.name": "leap",
  "method.gate": "own",
  "method.reward": "own",
  "method.credit": "own",
  "method.correction": "none",
  "method.sampling": "uniform",
}


def _row(folder, label, /, timing=False, **changes):
  changed = {f"method.{key}": value for key, value in changes.items()}
  changed["harness.timing"] = timing
  return Row(folder, label, _PARTS | changed)


LEAP = _row("leap", "**LEAP**")
GRPO_MULTI = _row(
  "grpo_multi_turn", "GRPO multi-turn, unpruned", name="grpo_multi_turn"
)
GRPO_SINGLE = _row(
  "grpo_single_turn", "GRPO single-turn", name="grpo_single_turn"
)
_MAIN = (
  GRPO_SINGLE,
  GRPO_MULTI,
  _row("kevin", "Kevin, discounted sum", name="kevin"),
  _row("murphy", "Murphy MaRS, same budget", name="murphy"),
  _row("trloo", "TRLOO (Dr. Kernel)", name="trloo"),
  _row("prime_echo", "PrimeEcho", name="prime_echo"),
  LEAP,
)
_GATE_OPEN = _row("gate_open", "off: all groups", gate="open")
_GATE_SMOOTHED = _row(
  "gate_smoothed", "fail rate smoothed over visits", gate="smoothed"
)
_RANK_STD = _row("reward_rank_std", "rank, divided by std", reward="rank_std")


def _at_rate(method, name, label, factor):
  return dataclasses.replace(
    method,
    name=f"{method.name}_{name}_rate",
    label=f"{method.label}, {label} the learning rate",
    factors={"learner.learning_rate": factor},
  )


TABLES: dict[str, tuple[Row, ...]] = {
  "main": _MAIN,
  "cost": _MAIN,
  "time": _MAIN,
  "feedback": _MAIN,
  # What headline.json compares: where its seconds go.
  "headline": (LEAP, GRPO_MULTI, GRPO_SINGLE),
  "dcp": (
    _GATE_OPEN,
    _row("gate_easy", "easy only: < 50 % fail", gate="easy"),
    _row("gate_hard", "hard only: >= 50 % fail", gate="hard"),
    _row(
      "gate_hard_not_hopeless",
      "hard, not hopeless: >= 50 % and < 100 %",
      gate="hard_not_hopeless",
    ),
    _row("gate_band", "band: 25 to 75 %", gate="band"),
    _row("gate_random", "random at LEAP's activation", gate="random"),
    _GATE_SMOOTHED,
    LEAP,
  ),
  "reward": (
    _row("reward_solved_std", "binary, std; DCP", reward="solved_std"),
    GRPO_MULTI,
    _row("reward_hand_set_std", "1 / .8 / .6, std", reward="hand_set_std"),
    _row(
      "reward_hand_set_loo", "1 / .8 / .6, leave-one-out", reward="hand_set_loo"
    ),
    LEAP,
    _GATE_OPEN,
    _RANK_STD,
    _row(
      "reward_rank_floor_solved",
      "rank, at least 0 if solved",
      reward="rank_floor_solved",
    ),
    _row(
      "reward_rank_fail_tiers",
      "rank, tiers of failure",
      reward="rank_fail_tiers",
    ),
    # On a CPU nothing is timed; a sweep there leaves this row out.
    _row(
      "reward_rank_speed", "rank, then speed", reward="rank_speed", timing=True
    ),
  ),
  "credit": (
    _row("gamma_0", "gamma 0", gamma=0.0),
    LEAP,
    _row("gamma_1", "gamma 1", gamma=1.0),
    _row(
      "credit_discounted_last",
      "negative on the last turn only",
      credit="discounted_last",
    ),
    _row("credit_first_turn", "first turn only", credit="first_turn"),
  ),
  "stability": (
    LEAP,
    _row("correction_tis", "truncated importance", correction="tis"),
    _row(
      "correction_geometric_mask",
      "geometric mask",
      correction="geometric_mask",
    ),
    _row("correction_mirror_pop", "MirrorPop", correction="mirror_pop"),
    _RANK_STD,
  ),
  "sampling": tuple(
    row
    for method, label in (
      (GRPO_SINGLE, "GRPO single-turn"),
      (GRPO_MULTI, "GRPO multi-turn"),
      (LEAP, "LEAP"),
    )
    for row in (
      method,
      _row(
        f"{method.name}_predictive",
        f"{label}, predictive draw",
        name=method.name,
        sampling="predictive",
      ),
    )
  ),
  # Of the gates the one with a memory: it needs problems that come again.
  "smoothing": (_GATE_SMOOTHED, LEAP),
  # One learning rate serves all methods of the other tables.
  "learning_rate": tuple(
    row
    for method in (GRPO_SINGLE, GRPO_MULTI, LEAP)
    for row in (
      _at_rate(method, "half", "half", 0.5),
      method,
      _at_rate(method, "double", "twice", 2.0),
    )
  ),
}

TABLES["all"] = tuple(
  {row.name: row for rows in TABLES.values() for row in rows}.values()
)
