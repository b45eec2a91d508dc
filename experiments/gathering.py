"""Rollouts of one iteration, refilled where too few groups teach anything."""

import dataclasses

import jax
import numpy as np

from experiments.programs import Programs
from experiments.state import Run
from leap_jax import problems, rollout
from leap_jax.types import Rollouts, Trajectory


@dataclasses.dataclass(frozen=True)
class Round:
  """One rollout as it was, before any of its groups was replaced."""

  correct: np.ndarray  # [P, G, T] bool
  executed: np.ndarray  # [P, G, T] bool
  ok: np.ndarray  # [P, G] bool
  active: np.ndarray  # [P] bool: the gate's decision
  trajectories: list[Trajectory]  # row by row


@dataclasses.dataclass
class Gathered:
  """One iteration's rollouts after refilling.

  What is trained on: `rollouts`, `host`, `advantages`. What was done for it,
  groups that were thrown away included: `rounds`, `stats`.
  """

  rollouts: Rollouts  # device
  host: Rollouts
  advantages: np.ndarray  # [P, G, T]
  rounds: tuple[Round, ...]  # the first one, then the refills
  stats: rollout.Stats
  num_replaced: int

  @property
  def has_spread(self) -> np.ndarray:
    """[P] groups that teach something."""
    return (self.advantages != 0).any((1, 2))

  @property
  def num_faults(self) -> int:
    """Samples of all rounds that the harness lost."""
    return sum(int((~r.ok).sum()) for r in self.rounds)


def _collect(run, programs, params, index, round_index):
  config = run.config
  chosen = problems.at_iteration(
    run.train,
    config.seed,
    index * (1 + config.rollout.max_refill_rounds) + round_index,
    run.shape.num_problems,
  )
  key = jax.random.fold_in(jax.random.key(config.seed), 2 + index)
  collected = rollout.collect(
    programs.sampler,
    programs.buffer,
    run.shape,
    run.tokenizer,
    params,
    jax.random.fold_in(key, round_index),
    chosen,
    run.pool.evaluate,
    programs.method.gate,
  )
  advantages = programs.method.advantage(
    collected.rollouts.correct,
    collected.rollouts.executed,
    collected.rollouts.ok,
  )
  host = jax.device_get(collected.rollouts)
  # Copies: the buffer itself is given away when groups are replaced.
  once = Round(
    np.array(host.correct),
    np.array(host.executed),
    np.array(host.ok),
    collected.active,
    collected.trajectories,
  )
  return Gathered(
    collected.rollouts,
    host,
    np.asarray(advantages),
    (once,),
    collected.stats,
    0,
  )


def gather(run: Run, programs: Programs, params, index: int) -> Gathered:
  """Rolls out one iteration; refills while too few groups have spread."""
  config = run.config.rollout
  gathered = _collect(run, programs, params, index, 0)
  for round_index in range(1, config.max_refill_rounds + 1):
    if gathered.has_spread.sum() >= config.min_spread_groups:
      break
    more = _collect(run, programs, params, index, round_index)
    gathered = _refill(run, programs, gathered, more)
  return gathered


def _refill(run, programs, gathered, more):
  """Replaces groups without spread by new ones that have it."""
  sources = np.full(run.shape.num_problems, -1, np.int32)
  vacant = np.flatnonzero(~gathered.has_spread)
  good = np.flatnonzero(more.has_spread)[: len(vacant)]
  sources[vacant[: len(good)]] = good
  rollouts = programs.buffer.replace_groups(
    gathered.rollouts, more.rollouts, sources
  )
  taken = sources >= 0
  choose = lambda a, b: np.where(
    taken.reshape((-1,) + (1,) * (a.ndim - 1)), b[np.maximum(sources, 0)], a
  )
  stats = rollout.Stats(
    **{
      f.name: getattr(gathered.stats, f.name) + getattr(more.stats, f.name)
      for f in dataclasses.fields(rollout.Stats)
    }
  )
  return Gathered(
    rollouts,
    jax.device_get(rollouts),
    choose(gathered.advantages, more.advantages),
    gathered.rounds + more.rounds,
    stats,
    gathered.num_replaced + int(taken.sum()),
  )
