"""Held-out accuracy: what a policy solves, and in which turn.

Every failed sample may debug (no gate), whatever the policy was trained with,
so that methods are compared on the same footing.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

import jax
import numpy as np

from kernels_eval.schema import ProblemCard
from leap_jax import buffer as buffer_lib
from leap_jax import dcp, random_feedback, rollout
from leap_jax.sampler import Sampler
from leap_jax.tokenizer import Tokenizer
from leap_jax.types import EndReason, RolloutShape, Trajectory


@dataclasses.dataclass(frozen=True)
class Outcome:
  """Results over problems and samples. Rates are fractions.

  A rate of nothing is None: without samples there is no accuracy.
  """

  acc_at: tuple[float | None, ...]  # solved by turn 1, 2, ..., T
  pass_at: dict[int, float]  # k -> solved by any of k samples (all turns)
  turns_per_pass: float | None  # turns used / samples solved
  recovery_rate: float | None  # of first-turn failures, solved later
  num_problems: int
  num_samples: int  # that count, over all problems
  num_faults: int  # samples lost to the harness
  sampled_tokens: int
  harness_calls: int
  sample_seconds: float
  harness_seconds: float

  def as_dict(self) -> dict:
    """Flat, for JSON."""
    result = {f"acc_at_{t + 1}": a for t, a in enumerate(self.acc_at)}
    result |= {f"pass_at_{k}": v for k, v in self.pass_at.items()}
    rest = dataclasses.asdict(self)
    del rest["acc_at"], rest["pass_at"]
    return result | rest


def pass_at_k(num_samples: int, num_correct: int, k: int) -> float:
  """Unbiased estimate that one of k samples is correct.

      1 - C(n - c, k) / C(n, k)

  (Chen et al. 2021, arXiv 2107.03374, eq. 1.)
  """
  if num_samples < k:
    raise ValueError(f"pass@{k} needs {k} samples, got {num_samples}")
  if num_samples - num_correct < k:
    return 1.0
  return 1.0 - math.comb(num_samples - num_correct, k) / math.comb(
    num_samples, k
  )


def summarize(
  trajectories: Sequence[Trajectory], num_turns: int, ks: Sequence[int]
) -> dict:
  """Rates of `Outcome` from trajectories; samples lost to faults are left out.

  Args:
    trajectories: any order.
    num_turns: T.
    ks: of pass@k; larger ones than the smallest group are left out.
  """
  counted = [t for t in trajectories if t.end_reason != EndReason.FAULT]
  solved = np.asarray(
    [
      len(t.turns) if t.end_reason == EndReason.SOLVED else num_turns + 1
      for t in counted
    ]
  )
  used = sum(len(t.turns) for t in counted)
  passes = int((solved <= num_turns).sum())
  failed_first = int((solved > 1).sum())
  groups: dict[str, list[bool]] = {}
  for trajectory, turn in zip(counted, solved, strict=True):
    groups.setdefault(trajectory.problem.name, []).append(turn <= num_turns)
  smallest = min((len(g) for g in groups.values()), default=0)
  return {
    "acc_at": tuple(
      float((solved <= t).mean()) if len(solved) else None
      for t in range(1, num_turns + 1)
    ),
    "pass_at": {
      k: float(np.mean([pass_at_k(len(g), sum(g), k) for g in groups.values()]))
      for k in ks
      if k <= smallest
    },
    "turns_per_pass": used / passes if passes else None,
    "recovery_rate": (
      (passes - int((solved == 1).sum())) / failed_first
      if failed_first
      else None
    ),
    "num_problems": len(groups),
    "num_samples": len(counted),
    "num_faults": len(trajectories) - len(counted),
  }


def by_problem(
  trajectories: Sequence[Trajectory], num_turns: int
) -> dict[str, list[int]]:
  """Counts by problem name: samples solved at turn 1, ..., T, samples not
  solved, turns used. Samples lost to faults are left out.

  All rates of `Outcome` but pass@k are ratios of sums of these, so that
  problems can be drawn again (bootstrap) without the conversations.
  """
  counts: dict[str, list[int]] = {}
  for trajectory in trajectories:
    if trajectory.end_reason == EndReason.FAULT:
      continue
    of = counts.setdefault(trajectory.problem.name, [0] * (num_turns + 2))
    used = len(trajectory.turns)
    solved = trajectory.end_reason == EndReason.SOLVED
    of[used - 1 if solved else num_turns] += 1
    of[-1] += used
  return counts


def evaluate_policy(
  sampler: Sampler,
  programs: buffer_lib.Programs,
  shape: RolloutShape,
  tokenizer: Tokenizer,
  params,
  key: jax.Array,
  problems: Sequence[ProblemCard],
  evaluate: rollout.Evaluate,
  *,
  ks: Sequence[int],
  tell: random_feedback.Tell = list,
  on_batch: Callable[[], None] = lambda: None,
) -> tuple[Outcome, list[Trajectory]]:
  """Samples G answers to each problem, with debugging, and counts.

  Args:
    sampler: compiled for `shape`.
    programs: of the buffer, likewise.
    shape: sizes; problems are taken P at a time.
    tokenizer: of the policy.
    params: of the policy.
    key: consumed; the same key gives the same samples.
    problems: held out; the last batch is filled up with problems that have
      been counted already, whose repeats are not.
    evaluate: the harness.
    ks: of pass@k.
    tell: of rollout.collect.
    on_batch: called after each batch.

  Returns:
    The outcome and the counted trajectories.

  Raises:
    HarnessError: the harness lost every answer of a batch.
  """
  p = shape.num_problems
  trajectories: list[Trajectory] = []
  totals = rollout.Stats()
  # Whatever the method. The same function each time: compiled once.
  open_gate = jax.jit(dcp.open_gate)
  for start in range(0, len(problems), p):
    batch = list(problems[start : start + p])
    fill = [problems[i % len(problems)] for i in range(p - len(batch))]
    collected = rollout.collect(
      sampler,
      programs,
      shape,
      tokenizer,
      params,
      jax.random.fold_in(key, start // p),
      batch + fill,
      evaluate,
      open_gate,
      tell,
    )
    trajectories += collected.trajectories[: len(batch) * shape.group_size]
    for field in dataclasses.fields(totals):
      value = getattr(totals, field.name) + getattr(collected.stats, field.name)
      setattr(totals, field.name, value)
    on_batch()
  return (
    Outcome(
      **summarize(trajectories, shape.num_turns, ks),
      sampled_tokens=totals.sampled_tokens,
      harness_calls=totals.harness_calls,
      sample_seconds=totals.sample_seconds,
      harness_seconds=totals.harness_seconds,
    ),
    trajectories,
  )
