"""Rewards to advantages of turns.

Two kinds. A credit spreads one reward of a whole sample over its turns:
`(reward, solved_at, executed) -> advantages`. A turn-level method pays each
turn by what it and later turns returned: `(correct, executed, ok) ->
advantages`. Masks are [P, G, T], validity is [P, G]; the result is [P, G, T]
float32 and 0 wherever a turn did not run. A reward is 0 where not ok.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from leap_jax import rewards

# ------------------------------------------------------ credit of a reward


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
  the solving turn alone. LEAP (arXiv 2608.01804), as summarised.

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


def credit_last_negative(
  reward: Float[Array, "P G"],
  solved_at: Int[Array, "P G"],
  executed: Bool[Array, "P G T"],
  *,
  gamma: float,
) -> Float[Array, "P G T"]:
  """`credit_turns`, but a negative reward applies to the last turn alone."""
  credit = credit_turns(reward, solved_at, executed, gamma=gamma)
  later = jnp.cumsum(executed[..., ::-1].astype(jnp.int32), -1)[..., ::-1]
  is_last = executed & (later == 1)
  return jnp.where((credit >= 0) | is_last, credit, 0.0)


def credit_all_turns(
  reward: Float[Array, "P G"],
  solved_at: Int[Array, "P G"],
  executed: Bool[Array, "P G T"],
) -> Float[Array, "P G T"]:
  """Every turn that ran gets the reward: GRPO with a terminal reward."""
  del solved_at
  return jnp.where(executed, reward[..., None], 0.0)


def credit_first_turn(
  reward: Float[Array, "P G"],
  solved_at: Int[Array, "P G"],
  executed: Bool[Array, "P G T"],
) -> Float[Array, "P G T"]:
  """The first turn alone gets the reward, whatever came of later ones:
  single-turn GRPO, PrimeEcho's gradient (arXiv 2606.04847)."""
  del solved_at
  is_first = (jnp.arange(executed.shape[-1]) == 0)[None, None]
  return jnp.where(executed & is_first, reward[..., None], 0.0)


# ------------------------------------------------------------- turn level


def discounted_returns(
  correct: Bool[Array, "P G T"],
  executed: Bool[Array, "P G T"],
  *,
  gamma: float,
) -> Float[Array, "P G T"]:
  """R_t = sum_{i >= t} gamma^(i - t) r_i with r_i = 1 if turn i is right.

  A trajectory ends with its first success, so that at most one r_i is 1: the
  sum is also the maximum over later turns.
  """
  scores = (correct & executed).astype(jnp.float32)
  after = jnp.zeros_like(scores[..., 0])
  returns = []
  for turn in reversed(range(scores.shape[-1])):
    after = scores[..., turn] + gamma * after
    returns.append(after)
  return jnp.stack(returns[::-1], -1)


def kevin(
  correct: Bool[Array, "P G T"],
  executed: Bool[Array, "P G T"],
  ok: Bool[Array, "P G"],
  *,
  gamma: float,
) -> Float[Array, "P G T"]:
  """Kevin (arXiv 2507.11948): discounted sum, one normalisation for all.

      R_t = sum_{i >= t} gamma^(i - t) r_i
      A   = (R - mean) / std   over all G x T turns of the problem that ran

  Kevin's score .3 + speed-up becomes 1 for a right kernel, as for every method
  here, and trajectories end with a success; Kevin goes on for speed.
  """
  p = ok.shape[0]
  returns = discounted_returns(correct, executed, gamma=gamma)
  counts = executed & ok[..., None]
  flat = rewards.standardize(returns.reshape(p, -1), counts.reshape(p, -1))
  return flat.reshape(executed.shape)


def murphy(
  correct: Bool[Array, "P G T"],
  executed: Bool[Array, "P G T"],
  ok: Bool[Array, "P G"],
) -> Float[Array, "P G T"]:
  """Murphy's MaRS (arXiv 2511.07833) with one child for each failed node.

      R'_t = max(r_t, R'_{t + 1});   A = (R' - mean) / std  among siblings

  One child is what the other methods spend, too. Children of one parent are
  then no group; all turns t of the problem stand in for them.
  """
  returns = discounted_returns(correct, executed, gamma=1.0)
  return _by_turn(rewards.standardize, returns, executed & ok[..., None])


def trloo(
  correct: Bool[Array, "P G T"],
  executed: Bool[Array, "P G T"],
  ok: Bool[Array, "P G"],
) -> Float[Array, "P G T"]:
  """Dr. Kernel's turn-level leave-one-out (arXiv 2602.05885).

      G_t = sum_{i >= t} r_i
      A_t = G_t - 1 / (N_t - 1) sum_{j != i} G_{j, t}
          = N_t / (N_t - 1) (G_t - mean_t)

  over the N_t samples of the problem whose turn t ran; no deviation. A turn
  that only one sample ran gets G itself (their code).
  """
  returns = discounted_returns(correct, executed, gamma=1.0)
  counts = executed & ok[..., None]
  advantage = _by_turn(rewards.leave_one_out, returns, counts)
  alone = counts & (counts.sum(1, keepdims=True) == 1)
  return jnp.where(alone, returns, advantage)


def _by_turn(statistics, returns, counts):
  """Group statistics over the samples of one problem and turn."""
  p, g, t = returns.shape
  rows = lambda x: jnp.swapaxes(x, 1, 2).reshape(p * t, g)
  centred = statistics(rows(returns), rows(counts))
  return jnp.swapaxes(centred.reshape(p, t, g), 1, 2)
