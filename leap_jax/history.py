"""What a run remembers of the problems it has met; saved with checkpoints.

Plain numbers of the host: they go through JSON unchanged, so that a resumed run
draws and gates as if nothing had happened.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np


@dataclasses.dataclass
class Seen:
  """One problem."""

  visits: int = 0  # groups
  samples: int = 0  # that counted, over all visits
  failures: int = 0  # first turns of them
  activations: int = 0  # visits with an open gate
  fail_rate: float | None = None  # smoothed over visits; None = no sample yet
  # Latest visits in a row in which every sample came to the same: all solved
  # in one turn, or none at all.
  uniform_visits: int = 0


@dataclasses.dataclass
class History:
  """All problems, and how far the draw has come."""

  seen: dict[str, Seen] = dataclasses.field(default_factory=dict)
  cursor: int = 0  # places of the order of problems that were looked at

  @classmethod
  def from_record(cls, record: dict[str, Any]) -> "History":
    """From what `dataclasses.asdict` made of it."""
    seen = {name: Seen(**values) for name, values in record["seen"].items()}
    return cls(seen, record["cursor"])


def smoothed(
  history: History,
  names: Sequence[str],
  first_turn_correct: np.ndarray,
  ok: np.ndarray,
  decay: float,
) -> np.ndarray:
  """Fail rates over visits, the present one included.

      rate = decay * rate_before + (1 - decay) * N_fail / N

  The first visit gives N_fail / N; a visit without a sample changes nothing.

  Args:
    history: before this visit.
    names: [P] problems.
    first_turn_correct: [P, G] bool.
    ok: [P, G] bool.
    decay: weight of the past, in [0, 1).

  Returns:
    [P] float64; NaN for a problem of which nothing is known.
  """
  rates = []
  for p, name in enumerate(names):
    before = history.seen.get(name, Seen()).fail_rate
    num_ok = int(ok[p].sum())
    if num_ok == 0:
      rates.append(math.nan if before is None else before)
      continue
    now = int((ok[p] & ~first_turn_correct[p]).sum()) / num_ok
    rates.append(now if before is None else decay * before + (1 - decay) * now)
  return np.asarray(rates, np.float64)


def note(
  history: History,
  names: Sequence[str],
  solved_at: np.ndarray,
  ok: np.ndarray,
  active: np.ndarray,
  rates: np.ndarray,
) -> None:
  """Adds one visit of each problem.

  Args:
    history: changed in place.
    names: [P].
    solved_at: [P, G] first solved turn from 1, T + 1 if none.
    ok: [P, G] bool.
    active: [P] bool, the gate's decision.
    rates: [P] of `smoothed`.
  """
  for p, name in enumerate(names):
    one = history.seen.setdefault(name, Seen())
    came_to = set(solved_at[p][ok[p]].tolist())
    one.visits += 1
    one.samples += int(ok[p].sum())
    one.failures += int((solved_at[p][ok[p]] > 1).sum())
    one.activations += int(active[p])
    one.fail_rate = None if math.isnan(rates[p]) else float(rates[p])
    # A visit that the harness lost says nothing.
    if came_to:
      one.uniform_visits = one.uniform_visits + 1 if len(came_to) == 1 else 0
