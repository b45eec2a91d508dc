"""Outcomes to rewards inside of a group. Pure; axes as in `dcp.py`."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


def rank_rewards(
  key: Int[Array, "P G"] | Float[Array, "P G"], ok: Bool[Array, "P G"]
) -> Float[Array, "P G"]:
  """A tournament inside of each group: wins minus losses.

      r[p, g] = sum_j ok_j sign(key_j - key_g) / max(N - 1, 1),  N = sum_j ok_j

  The key is the turn of the first success: smaller is better. No constants, no
  mean, no standard deviation; the sum over a group is 0. On binary outcomes
  this is the leave-one-out advantage (RLOO). LEAP (arXiv 2608.01804),
  rank-based reward.

  Args:
    key: [P, G] rank key, smaller is better.
    ok: [P, G] whether the sample takes part.

  Returns:
    [P, G] in [-1, 1]; 0 where not ok.
  """
  # [P, g, j]: +1 where g beats j.
  outcome = jnp.sign(key[:, None, :] - key[:, :, None]).astype(jnp.float32)
  plays = ok[:, :, None] & ok[:, None, :]
  wins = jnp.where(plays, outcome, 0.0).sum(-1)
  opponents = jnp.maximum(ok.sum(-1, keepdims=True) - 1, 1)
  return wins / opponents


def binary_rewards(
  solved: Bool[Array, "P G"], ok: Bool[Array, "P G"]
) -> Float[Array, "P G"]:
  """1 for a solved sample, 0 otherwise."""
  return (solved & ok).astype(jnp.float32)


def standardize(
  rewards: Float[Array, "P G"], ok: Bool[Array, "P G"]
) -> Float[Array, "P G"]:
  """GRPO's group statistics: (r - mean) / std over each group.

  A group without spread gives exactly 0 for every member, whatever rounding
  does to its standard deviation; so does a group of one.

  Args:
    rewards: [P, G].
    ok: [P, G] whether the sample counts.

  Returns:
    [P, G]; 0 where not ok.
  """
  count = jnp.maximum(ok.sum(-1, keepdims=True), 1)
  masked = jnp.where(ok, rewards, 0.0)
  highest = jnp.where(ok, rewards, -jnp.inf).max(-1, keepdims=True)
  lowest = jnp.where(ok, rewards, jnp.inf).min(-1, keepdims=True)
  has_spread = highest > lowest
  mean = masked.sum(-1, keepdims=True) / count
  centred = jnp.where(ok, rewards - mean, 0.0)
  variance = jnp.square(centred).sum(-1, keepdims=True) / count
  # Where there is no spread the root is taken of 1: no NaN, also in gradients.
  deviation = jnp.sqrt(jnp.where(has_spread, variance, 1.0))
  return jnp.where(has_spread & ok, centred / deviation, 0.0)
