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


def _has_spread(rewards, ok):
  """[P, 1] whether members that count differ at all."""
  highest = jnp.where(ok, rewards, -jnp.inf).max(-1, keepdims=True)
  lowest = jnp.where(ok, rewards, jnp.inf).min(-1, keepdims=True)
  return highest > lowest


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
  has_spread = _has_spread(rewards, ok)
  mean = masked.sum(-1, keepdims=True) / count
  centred = jnp.where(ok, rewards - mean, 0.0)
  variance = jnp.square(centred).sum(-1, keepdims=True) / count
  # Where there is no spread the root is taken of 1: no NaN, also in gradients.
  deviation = jnp.sqrt(jnp.where(has_spread, variance, 1.0))
  return jnp.where(has_spread & ok, centred / deviation, 0.0)


def leave_one_out(
  rewards: Float[Array, "P G"], ok: Bool[Array, "P G"]
) -> Float[Array, "P G"]:
  """Each reward minus the mean of the others': RLOO (arXiv 2402.14740).

      A[p, g] = r_g - 1 / (N - 1) sum_{j != g} r_j

  Args:
    rewards: [P, G].
    ok: [P, G] whether the sample counts.

  Returns:
    [P, G]; 0 where not ok, and exactly 0 in a group without spread or of one.
  """
  count = ok.sum(-1, keepdims=True)
  masked = jnp.where(ok, rewards, 0.0)
  others = (masked.sum(-1, keepdims=True) - masked) / jnp.maximum(count - 1, 1)
  return jnp.where(ok & _has_spread(rewards, ok), masked - others, 0.0)


def hand_set_rewards(
  solved_at: Int[Array, "P G"], ok: Bool[Array, "P G"], num_turns: int
) -> Float[Array, "P G"]:
  """1, .8, .6, ... for the first, second, third turn; 0 for a failure.

  The constants that LEAP's rank reward is said to do without. From turn 5 on
  the reward stays at .2.
  """
  by_turn = jnp.maximum(1.0 - 0.2 * (solved_at - 1), 0.2)
  return jnp.where(ok & (solved_at <= num_turns), by_turn, 0.0)


def prime_echo_rewards(
  solved_at: Int[Array, "P G"],
  ok: Bool[Array, "P G"],
  num_turns: int,
  *,
  alpha: float = 0.75,
  early: tuple[float, float] = (0.15, 0.08),
) -> Float[Array, "P G"]:
  """PrimeEcho (MusaCoder, arXiv 2606.04847).

      R = alpha s_1 + (1 - alpha) max_k s_k + b_early

  with s_k = 1 if turn k is right. The paper gives alpha; of b_early it says
  only that it is larger for turn 1 than for turn 2 and 0 from turn 3 on: the
  defaults are those of a third-party sketch.
  """
  first = (solved_at == 1).astype(jnp.float32)
  second = (solved_at == 2).astype(jnp.float32)
  ever = (solved_at <= num_turns).astype(jnp.float32)
  total = alpha * first + (1.0 - alpha) * ever
  total = total + early[0] * first + early[1] * second
  return jnp.where(ok, total, 0.0)


def floor_solved(
  rewards: Float[Array, "P G"], solved: Bool[Array, "P G"]
) -> Float[Array, "P G"]:
  """A success is never punished: max(r, 0) where solved.

  Without it a late repair among early ones is, exactly when repair works.
  """
  return jnp.where(solved, jnp.maximum(rewards, 0.0), rewards)


def ceil_failed(
  rewards: Float[Array, "P G"], solved: Bool[Array, "P G"]
) -> Float[Array, "P G"]:
  """A failure is never reinforced: min(r, 0) where not solved (CoRPO, arXiv
  2511.04439)."""
  return jnp.where(solved, rewards, jnp.minimum(rewards, 0.0))


def fail_tier_key(
  solved_at: Int[Array, "P G"],
  progress: Int[Array, "P G"],
  num_turns: int,
  most_progress: int,
) -> Float[Array, "P G"]:
  """A rank key that also orders failures, by how far their last turn came.

      key = k                                            if solved
      key = T + 1 + (most - progress) / (most + 1)       otherwise

  Args:
    solved_at: [P, G] from 1, T + 1 if unsolved.
    progress: [P, G] of the last turn, in 0..most_progress.
    num_turns: T.
    most_progress: of a failure.
  """
  missing = (most_progress - progress) / (most_progress + 1)
  late = jnp.where(solved_at > num_turns, missing, 0.0)
  return (solved_at + late).astype(jnp.float32)


def speed_key(
  solved_at: Int[Array, "P G"], speedup: Float[Array, "P G"], num_turns: int
) -> Float[Array, "P G"]:
  """A rank key: the solving turn first, then the speed of what solved it.

      key = 1000 k - bin,   bin = round(log_1.1 speedup) in [-200, 200]

  Two kernels within about 10 % of each other tie: timing noise is no order. A
  success that was not timed counts as the slowest; where nothing was timed
  this is the rank of the turn alone.

  Args:
    solved_at: [P, G] from 1, T + 1 if unsolved.
    speedup: [P, G] reference time over candidate time at the solving turn; 0
      where nothing was timed.
    num_turns: T.
  """
  timed = speedup > 0
  log = jnp.log(jnp.where(timed, speedup, 1.0)) / jnp.log(1.1)
  bins = jnp.where(timed, jnp.clip(jnp.round(log), -200, 200), -200.0)
  solved = solved_at <= num_turns
  return 1000.0 * solved_at - jnp.where(solved, bins, 0.0)
