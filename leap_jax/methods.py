"""A method = a gate and an advantage, made from settings.

A recipe names a method's parts; a setting other than "own" puts another part
in its place. The tables are the only registries: plain dicts. Their keys stand
in `choices.py` too, so that a mistake is answered before JAX is loaded.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from leap_jax import advantages, dcp, rewards
from leap_jax.outcomes import MOST_PROGRESS
from leap_jax.types import Outcomes

Gate = Callable[[jax.Array, jax.Array], jax.Array]
"""(first_turn_correct [P, G], ok [P, G]) -> active [P]"""
MethodGate = Callable[[jax.Array, jax.Array, jax.Array, jax.Array], jax.Array]
"""(key, fail_rate [P], first_turn_correct [P, G], ok [P, G]) -> active [P];
with its first two arguments bound, a Gate. `fail_rate` is the smoothed one."""
Advantage = Callable[[Outcomes], jax.Array]
"""outcomes -> [P, G, T]"""


class Method(NamedTuple):
  """What distinguishes LEAP from its baselines. Both functions are jitted."""

  name: str
  gate: MethodGate
  advantage: Advantage


class Recipe(NamedTuple):
  """A method in parts. A turn-level method has neither reward nor credit."""

  gate: str  # of GATES
  reward: str | None  # of REWARDS
  credit: str | None  # of CREDITS


METHODS = {
  # arXiv 2608.01804
  "leap": Recipe("difficulty", "rank", "discounted"),
  # One terminal reward, shared by all turns.
  "grpo_multi_turn": Recipe("open", "solved_std", "shared"),
  "grpo_single_turn": Recipe("closed", "first_turn_std", "first_turn"),
  "kevin": Recipe("open", None, None),  # arXiv 2507.11948
  "murphy": Recipe("open", None, None),  # arXiv 2511.07833
  "trloo": Recipe("open", None, None),  # arXiv 2602.05885
  # arXiv 2606.04847
  "prime_echo": Recipe("open", "prime_echo_std", "first_turn"),
}

TURN_ADVANTAGES = {
  "kevin": lambda gamma: functools.partial(advantages.kevin, gamma=gamma),
  "murphy": lambda gamma: advantages.murphy,
  "trloo": lambda gamma: advantages.trloo,
}
"""gamma -> (correct, executed, ok) -> [P, G, T]"""


# ------------------------------------------------------------------ gates


def _by_first_turns(gate: Gate) -> MethodGate:
  def method_gate(key, fail_rate, first_turn_correct, ok):
    del key, fail_rate
    return gate(first_turn_correct, ok)

  return method_gate


def _by_difficulty(f_lo, f_hi):
  return _by_first_turns(
    functools.partial(dcp.difficulty_gate, f_lo=f_lo, f_hi=f_hi)
  )


def _by_lot(f_lo, f_hi):
  def method_gate(key, fail_rate, first_turn_correct, ok):
    del fail_rate
    return dcp.random_gate(key, first_turn_correct, ok, f_lo=f_lo, f_hi=f_hi)

  return method_gate


def _by_smoothed_difficulty(f_lo, f_hi):
  def method_gate(key, fail_rate, first_turn_correct, ok):
    del key
    return dcp.smoothed_gate(
      fail_rate, first_turn_correct, ok, f_lo=f_lo, f_hi=f_hi
    )

  return method_gate


GATES = {
  "open": lambda f_lo, f_hi: _by_first_turns(dcp.open_gate),
  "closed": lambda f_lo, f_hi: _by_first_turns(dcp.closed_gate),
  "difficulty": _by_difficulty,
  "easy": lambda f_lo, f_hi: _by_first_turns(dcp.easy_gate),
  "hard": lambda f_lo, f_hi: _by_first_turns(dcp.hard_gate),
  "hard_not_hopeless": lambda f_lo, f_hi: _by_first_turns(
    dcp.hard_not_hopeless_gate
  ),
  "band": lambda f_lo, f_hi: _by_difficulty(0.25, 0.75),
  "random": _by_lot,
  "smoothed": _by_smoothed_difficulty,
}
"""(f_lo, f_hi) -> MethodGate; those with bounds of their own ignore them."""


# ---------------------------------------------------------------- rewards


def _solved_at(outcomes):
  return dcp.solved_at(outcomes.correct, outcomes.executed)


def _rank(outcomes):
  return rewards.rank_rewards(_solved_at(outcomes), outcomes.ok)


def _is_solved(outcomes):
  return (outcomes.correct & outcomes.executed).any(-1)


def _solved(outcomes):
  return rewards.binary_rewards(_is_solved(outcomes), outcomes.ok)


def _first_turn(outcomes):
  first = outcomes.correct[..., 0] & outcomes.executed[..., 0]
  return rewards.binary_rewards(first, outcomes.ok)


def _hand_set(outcomes):
  num_turns = outcomes.executed.shape[-1]
  return rewards.hand_set_rewards(_solved_at(outcomes), outcomes.ok, num_turns)


def _prime_echo(outcomes):
  num_turns = outcomes.executed.shape[-1]
  return rewards.prime_echo_rewards(
    _solved_at(outcomes), outcomes.ok, num_turns
  )


def _std(scores):
  return lambda outcomes: rewards.standardize(scores(outcomes), outcomes.ok)


def _loo(scores):
  return lambda outcomes: rewards.leave_one_out(scores(outcomes), outcomes.ok)


def _rank_floor_solved(outcomes):
  return rewards.floor_solved(_rank(outcomes), _is_solved(outcomes))


def _rank_fail_tiers(outcomes):
  num_turns = outcomes.executed.shape[-1]
  last = jnp.maximum(outcomes.executed.sum(-1, keepdims=True) - 1, 0)
  progress = jnp.take_along_axis(outcomes.progress, last, -1)[..., 0]
  key = rewards.fail_tier_key(
    _solved_at(outcomes), progress, num_turns, MOST_PROGRESS
  )
  return rewards.ceil_failed(
    rewards.rank_rewards(key, outcomes.ok), _is_solved(outcomes)
  )


def _rank_speed(outcomes):
  num_turns = outcomes.executed.shape[-1]
  k = _solved_at(outcomes)
  at = jnp.minimum(k, num_turns)[..., None] - 1
  speedup = jnp.take_along_axis(outcomes.speedup, at, -1)[..., 0]
  return rewards.rank_rewards(
    rewards.speed_key(k, speedup, num_turns), outcomes.ok
  )


REWARDS = {
  "rank": _rank,
  "rank_std": _std(_rank),
  "rank_floor_solved": _rank_floor_solved,
  "rank_fail_tiers": _rank_fail_tiers,
  "rank_speed": _rank_speed,
  "solved_std": _std(_solved),
  "solved_loo": _loo(_solved),
  "first_turn_std": _std(_first_turn),
  "hand_set_std": _std(_hand_set),
  "hand_set_loo": _loo(_hand_set),
  "prime_echo_std": _std(_prime_echo),
}
"""outcomes -> [P, G], 0 where not ok"""

CREDITS = {
  "discounted": lambda gamma: functools.partial(
    advantages.credit_turns, gamma=gamma
  ),
  "discounted_last": lambda gamma: functools.partial(
    advantages.credit_last_negative, gamma=gamma
  ),
  "shared": lambda gamma: advantages.credit_all_turns,
  "first_turn": lambda gamma: advantages.credit_first_turn,
}
"""gamma -> (reward, solved_at, executed) -> [P, G, T]"""


# ----------------------------------------------------------------- making


def _own_or(own, part):
  return own if part == "own" else part


def make_method(
  name: str,
  *,
  gate: str = "own",
  reward: str = "own",
  credit: str = "own",
  f_lo: float,
  f_hi: float,
  gamma: float,
) -> Method:
  """A method with some of its parts exchanged.

  Args:
    name: of METHODS.
    gate: of GATES, or "own".
    reward: of REWARDS, or "own".
    credit: of CREDITS, or "own".
    f_lo: least fraction of failures, of gates that have one.
    f_hi: most.
    gamma: discount, of credits and methods that have one.

  Raises:
    ValueError: a reward or credit for a turn-level method, which has none.
  """
  recipe = METHODS[name]
  gate_fn = jax.jit(GATES[_own_or(recipe.gate, gate)](f_lo, f_hi))
  if name in TURN_ADVANTAGES:
    if (reward, credit) != ("own", "own"):
      raise ValueError(f"{name} pays turns, not samples: no reward, no credit")
    of_turns = TURN_ADVANTAGES[name](gamma)
    return Method(
      name,
      gate_fn,
      jax.jit(lambda o: of_turns(o.correct, o.executed, o.ok)),
    )
  reward_fn = REWARDS[_own_or(recipe.reward, reward)]
  credit_fn = CREDITS[_own_or(recipe.credit, credit)](gamma)
  return Method(
    name,
    gate_fn,
    jax.jit(lambda o: credit_fn(reward_fn(o), _solved_at(o), o.executed)),
  )
