"""Rewards to advantages of turns, one function a method.

All have the signature `(correct, executed, ok) -> advantages` with [P, G, T]
masks of outcomes and executed turns and [P, G] validity; the result is [P, G,
T] float32 and 0 wherever a turn did not run.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from leap_jax import dcp, rewards


def credit_turns(
  reward: Float[Array, "P G"],
  solved_at: Int[Array, "P G"],
  executed: Bool[Array, "P G T"],
  *,
  gamma: float,
) -> Float[Array, "P G T"]:
  """Spreads a trajectory's reward over its turns.

      A[.., t] = executed * (r > 0 ? gamma^(k - t) r : r),   turns t from 1

  A positive reward reaches back from the solving turn k with a discount; a
  negative one applies to the whole trajectory. gamma^0 = 1, so gamma = 0 pays
  the solving turn alone.

  Args:
    reward: [P, G].
    solved_at: [P, G] solving turn from 1, T + 1 if unsolved.
    executed: [P, G, T].
    gamma: discount in [0, 1].

  Returns:
    [P, G, T].
  """
  turns = jnp.arange(1, executed.shape[-1] + 1)[None, None]
  distance = jnp.maximum(solved_at[..., None] - turns, 0)
  discount = jnp.power(jnp.float32(gamma), distance.astype(jnp.float32))
  r = reward[..., None]
  return jnp.where(executed, jnp.where(r > 0, r * discount, r), 0.0)


def leap(
  correct: Bool[Array, "P G T"],
  executed: Bool[Array, "P G T"],
  ok: Bool[Array, "P G"],
  *,
  gamma: float,
) -> Float[Array, "P G T"]:
  """LEAP: rank reward on the solving turn, turn credit with gamma."""
  k = dcp.solved_at(correct, executed)
  return credit_turns(rewards.rank_rewards(k, ok), k, executed, gamma=gamma)


def grpo_multi_turn(
  correct: Bool[Array, "P G T"],
  executed: Bool[Array, "P G T"],
  ok: Bool[Array, "P G"],
) -> Float[Array, "P G T"]:
  """GRPO with a terminal reward: every turn of a trajectory gets
  (solved - mean) / std of its group, whichever turn solved it."""
  solved = (correct & executed).any(-1)
  shared = rewards.standardize(rewards.binary_rewards(solved, ok), ok)
  return jnp.where(executed, shared[..., None], 0.0)


def grpo_single_turn(
  correct: Bool[Array, "P G T"],
  executed: Bool[Array, "P G T"],
  ok: Bool[Array, "P G"],
) -> Float[Array, "P G T"]:
  """GRPO on first turns: (correct - mean) / std on turn 1, 0 on later ones."""
  first = correct[..., 0] & executed[..., 0]
  advantage = rewards.standardize(rewards.binary_rewards(first, ok), ok)
  is_first = (jnp.arange(executed.shape[-1]) == 0)[None, None]
  return jnp.where(executed & is_first, advantage[..., None], 0.0)
