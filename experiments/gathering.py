"""Rollouts of one iteration, refilled where too few groups teach anything."""

import dataclasses

import jax
import numpy as np

from experiments.programs import Programs
from experiments.state import Run
from leap_jax import problems, rollout
from leap_jax.types import Rollouts, Trajectory


@dataclasses.dataclass
class Gathered:
  """One iteration's rollouts after refilling."""

  rollouts: Rollouts  # device
  host: Rollouts
  advantages: np.ndarray  # [P, G, T]
  active: np.ndarray  # [P]
  trajectories: list[Trajectory]  # row by row
  stats: rollout.Stats
  num_rounds: int
  num_replaced: int

  @property
  def has_spread(self) -> np.ndarray:
    """[P] groups that teach something."""
    return (self.advantages != 0).any((1, 2))


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
  return Gathered(
    collected.rollouts,
    jax.device_get(collected.rollouts),
    np.asarray(advantages),
    collected.active,
    collected.trajectories,
    collected.stats,
    0,
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
  g = run.shape.group_size
  trajectories = list(gathered.trajectories)
  for place, source in enumerate(sources):
    if source >= 0:
      trajectories[place * g : (place + 1) * g] = more.trajectories[
        source * g : (source + 1) * g
      ]
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
    choose(gathered.active, more.active),
    trajectories,
    stats,
    gathered.num_rounds + 1,
    gathered.num_replaced + int(taken.sum()),
  )
