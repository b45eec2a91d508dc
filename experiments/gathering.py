"""Rollouts of one iteration, refilled where too few groups teach anything."""

import dataclasses

import jax
import numpy as np

from experiments.programs import Programs
from experiments.state import Run
from leap_jax import dcp, history, outcomes, problems, rollout
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


def _draw_uniform(run):
  past = run.problems
  chosen = problems.in_order(
    run.train, run.config.seed, past.cursor, run.shape.num_problems
  )
  past.cursor += len(chosen)
  return chosen


def _draw_predictive(run):
  visits = {n: one.uniform_visits for n, one in run.problems.seen.items()}
  chosen, run.problems.cursor = problems.predicted(
    run.train,
    run.config.seed,
    run.problems.cursor,
    run.shape.num_problems,
    visits,
  )
  return chosen


SAMPLINGS = {"uniform": _draw_uniform, "predictive": _draw_predictive}
"""How the problems of a rollout, first or refill, are drawn. Each moves the
cursor by what it has looked at: no problem is passed over for a refill that did
not happen."""


def _bind_gate(run, programs, chosen, index, round_index):
  """The method's gate for this rollout: its lot and its memory are bound."""
  # 0 is nobody else's: evaluations fold in 1, iterations 2 and more.
  key = jax.random.fold_in(jax.random.key(run.config.seed), 0)
  key = jax.random.fold_in(jax.random.fold_in(key, index), round_index)

  def gate(first_turn_correct, ok):
    rates = history.smoothed(
      run.problems,
      [card.name for card in chosen],
      first_turn_correct,
      ok,
      run.config.method.fail_rate_decay,
    )
    return programs.method.gate(
      key, np.asarray(rates, np.float32), first_turn_correct, ok
    )

  return gate


def _remember(run, chosen, rollouts, active):
  names = [card.name for card in chosen]
  first, ok = np.asarray(rollouts.correct)[..., 0], np.asarray(rollouts.ok)
  rates = history.smoothed(
    run.problems, names, first, ok, run.config.method.fail_rate_decay
  )
  solved_at = np.asarray(dcp.solved_at(rollouts.correct, rollouts.executed))
  history.note(run.problems, names, solved_at, ok, active, rates)


def _collect(run, programs, params, index, round_index):
  config = run.config
  chosen = SAMPLINGS[config.method.sampling](run)
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
    _bind_gate(run, programs, chosen, index, round_index),
  )
  advantages = programs.method.advantage(
    outcomes.make(collected.rollouts, collected.trajectories)
  )
  host = jax.device_get(collected.rollouts)
  _remember(run, chosen, collected.rollouts, collected.active)
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
