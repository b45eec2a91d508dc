"""The tournament and group statistics."""

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis.extra import numpy as hnp

from leap_jax import rewards

# Solved at turn 1, 2, 3, failed -> reward of each, G = 8. The worked table of
# the derivation: r(turn 1) = (n2 + n3 + nf) / 7, and so on.
TABLE = {
  (7, 1, 0, 0): (1 / 7, -1.0, None, None),
  (6, 2, 0, 0): (2 / 7, -6 / 7, None, None),
  (4, 1, 0, 3): (4 / 7, -1 / 7, None, -5 / 7),
  (4, 4, 0, 0): (4 / 7, -4 / 7, None, None),
  (3, 2, 1, 2): (5 / 7, 0.0, -3 / 7, -6 / 7),
  (1, 2, 0, 5): (1.0, 4 / 7, None, -3 / 7),
  (0, 1, 0, 7): (None, 1.0, None, -1 / 7),
  (0, 2, 1, 5): (None, 6 / 7, 3 / 7, -3 / 7),
  (0, 0, 0, 8): (None, None, None, 0.0),
  (8, 0, 0, 0): (0.0, None, None, None),
}


@pytest.mark.parametrize("counts", TABLE, ids=str)
def test_rank_rewards_of_the_worked_table(counts):
  key = jnp.asarray([[k + 1 for k, n in enumerate(counts) for _ in range(n)]])
  got = rewards.rank_rewards(key, jnp.ones((1, 8), bool))[0]
  expected = [TABLE[counts][k] for k, n in enumerate(counts) for _ in range(n)]
  np.testing.assert_allclose(got, expected, atol=1e-6)


def test_rank_rewards_leave_lost_samples_out():
  # Keys 1, 2, 3 of which the second is lost: the others play one match.
  key = jnp.asarray([[1, 2, 3]])
  ok = jnp.asarray([[True, False, True]])
  assert rewards.rank_rewards(key, ok).tolist() == [[1.0, 0.0, -1.0]]


@pytest.mark.covers("P01")
def test_a_group_of_one_gets_nothing():
  one = jnp.asarray([[2]])
  assert rewards.rank_rewards(one, jnp.asarray([[True]])).tolist() == [[0.0]]
  r = jnp.asarray([[0.7]])
  assert rewards.standardize(r, jnp.asarray([[True]])).tolist() == [[0.0]]


# One shape: another one would compile everything again.
groups = st.tuples(
  hnp.arrays(np.int32, (2, 7), elements=st.integers(1, 4)),
  hnp.arrays(bool, (2, 7)),
)


def ranked(key, ok):
  return np.asarray(rewards.rank_rewards(jnp.asarray(key), jnp.asarray(ok)))


@hypothesis.given(groups)
@hypothesis.settings(deadline=None, max_examples=60)
def test_rank_rewards_sum_to_zero_and_stay_in_range(case):
  key, ok = case
  r = ranked(key, ok)
  np.testing.assert_allclose(r.sum(-1), 0.0, atol=1e-5)
  assert (np.abs(r) <= 1 + 1e-6).all()
  assert (r[~ok] == 0).all()


@hypothesis.given(groups)
@hypothesis.settings(deadline=None, max_examples=60)
def test_the_worst_key_is_never_rewarded(case):
  key, ok = case
  r = ranked(key, ok)
  failed = (key == 4) & ok
  assert (r[failed] <= 1e-6).all()


@hypothesis.given(groups, st.randoms())
@hypothesis.settings(deadline=None, max_examples=60)
def test_rank_rewards_follow_a_permutation_of_the_group(case, random):
  key, ok = case
  order = list(range(key.shape[1]))
  random.shuffle(order)
  np.testing.assert_allclose(
    ranked(key[:, order], ok[:, order]),
    ranked(key, ok)[:, order],
    atol=1e-6,
  )


@hypothesis.given(groups)
@hypothesis.settings(deadline=None, max_examples=60)
def test_rank_rewards_know_only_the_order(case):
  key, ok = case
  stretched = np.exp(key.astype(np.float32)) * 3 - 7
  np.testing.assert_allclose(
    ranked(stretched, ok),
    ranked(key, ok),
    atol=1e-6,
  )


@hypothesis.given(groups)
@hypothesis.settings(deadline=None, max_examples=60)
def test_equal_keys_get_equal_rewards(case):
  key, ok = case
  r = ranked(key, ok)
  for p in range(key.shape[0]):
    for k in np.unique(key[p][ok[p]]):
      members = r[p][ok[p] & (key[p] == k)]
      assert np.ptp(members) == 0


@hypothesis.given(groups)
@hypothesis.settings(deadline=None, max_examples=60)
def test_on_binary_outcomes_it_is_leave_one_out(case):
  key, ok = case
  solved = key <= 2
  r = ranked(np.where(solved, 1, 2), ok)
  for p, g in zip(*np.nonzero(ok), strict=True):
    others = [solved[p, j] for j in range(ok.shape[1]) if ok[p, j] and j != g]
    expected = float(solved[p, g]) - np.mean(others) if others else 0.0
    np.testing.assert_allclose(r[p, g], expected, atol=1e-6)


@hypothesis.given(groups)
@hypothesis.settings(deadline=None, max_examples=40)
def test_it_is_the_centred_mid_rank(case):
  key, _ = case
  ok = np.ones_like(key, bool)
  g = key.shape[1]
  beaten = (key[:, None, :] > key[:, :, None]).sum(-1)
  tied = (key[:, None, :] == key[:, :, None]).sum(-1)
  midrank = beaten + (1 + tied) / 2
  np.testing.assert_allclose(
    ranked(key, ok),
    2 * (midrank - (g + 1) / 2) / (g - 1),
    atol=1e-5,
  )


# ------------------------------------------------ equal rewards in a group


@pytest.mark.parametrize(
  "values", [[0.0] * 4, [1.0] * 4, [0.35] * 8, [1e-7] * 5, [0.1 + 0.2] * 3]
)
@pytest.mark.covers("P01")
def test_equal_rewards_give_exactly_zero_and_finite_gradients(values):
  r = jnp.asarray([values], jnp.float32)
  ok = jnp.ones_like(r, bool)
  assert rewards.standardize(r, ok).tolist() == [[0.0] * len(values)]
  gradient = jax.grad(lambda x: rewards.standardize(x, ok).sum())(r)
  assert bool(jnp.isfinite(gradient).all())


@pytest.mark.covers("P01")
def test_statistics_are_of_each_group():
  # Across both groups there is spread; inside of each there is none.
  r = jnp.asarray([[0.0, 0.0], [1.0, 1.0]])
  ok = jnp.ones((2, 2), bool)
  assert rewards.standardize(r, ok).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_standardized_rewards_by_hand():
  # 1, 0, 0, 0: mean .25, deviation sqrt(3 / 16) = .4330
  r = jnp.asarray([[1.0, 0.0, 0.0, 0.0]])
  got = rewards.standardize(r, jnp.ones((1, 4), bool))[0]
  np.testing.assert_allclose(
    got, [0.75 / 0.4330127, *[-0.25 / 0.4330127] * 3], rtol=1e-5
  )


def test_lost_samples_have_no_part_in_the_statistics():
  r = jnp.asarray([[1.0, 0.0, 99.0]])
  ok = jnp.asarray([[True, True, False]])
  got = rewards.standardize(r, ok)[0]
  np.testing.assert_allclose(got, [1.0, -1.0, 0.0], atol=1e-6)


# ------------------------------------------------------- other rewards


def test_leave_one_out_by_hand():
  # 1, .8, 0, 0 -> the others' means .8/3, 1/3, 1.8/3, 1.8/3.
  r = jnp.asarray([[1.0, 0.8, 0.0, 0.0, 7.0]])
  ok = jnp.asarray([[True] * 4 + [False]])
  got = rewards.leave_one_out(r, ok)[0]
  np.testing.assert_allclose(
    got, [1 - 0.8 / 3, 0.8 - 1 / 3, -0.6, -0.6, 0.0], atol=1e-6
  )
  alone = jnp.asarray([[True] + [False] * 4])
  assert not rewards.leave_one_out(r, alone).any()


@hypothesis.given(groups)
@hypothesis.settings(deadline=None, max_examples=40)
def test_leave_one_out_is_the_centred_reward_stretched(case):
  key, ok = (jnp.asarray(x) for x in case)
  r = rewards.hand_set_rewards(key, ok, 3)
  n = np.maximum(ok.sum(-1, keepdims=True), 1)
  centred = np.where(ok, r - (r * ok).sum(-1, keepdims=True) / n, 0)
  np.testing.assert_allclose(
    rewards.leave_one_out(r, ok), centred * n / np.maximum(n - 1, 1), atol=1e-5
  )


def test_hand_set_and_prime_echo_rewards_by_hand():
  key = jnp.asarray([[1, 2, 3, 4, 1]])
  ok = jnp.asarray([[True] * 4 + [False]])
  got = rewards.hand_set_rewards(key, ok, 3)[0]
  np.testing.assert_allclose(got, [1.0, 0.8, 0.6, 0.0, 0.0], atol=1e-6)
  # .75 s_1 + .25 max s + .15 or .08: 1.15, .33, .25, 0.
  got = rewards.prime_echo_rewards(key, ok, 3)[0]
  np.testing.assert_allclose(got, [1.15, 0.33, 0.25, 0.0, 0.0], atol=1e-6)


def test_failures_are_ordered_by_how_far_they_came():
  # Two solved, then wrong, crashed, not compiled, no kernel (progress 3..0).
  k = jnp.asarray([[1, 3, 4, 4, 4, 4]])
  progress = jnp.asarray([[0, 0, 3, 2, 1, 0]])
  key = rewards.fail_tier_key(k, progress, 3, 3)
  np.testing.assert_allclose(key[0], [1, 3, 4, 4.25, 4.5, 4.75])
  r = rewards.rank_rewards(key, jnp.ones((1, 6), bool))
  np.testing.assert_allclose(r[0], [1, 0.6, 0.2, -0.2, -0.6, -1], atol=1e-6)
  # The best failure beats three of five and still earns nothing.
  got = rewards.ceil_failed(r, k <= 3)[0]
  np.testing.assert_allclose(got, [1, 0.6, 0, -0.2, -0.6, -1], atol=1e-6)


def test_a_floor_lifts_late_repairs_and_no_failure():
  # (4, 4, 0, 0) of the worked table: -4/7 for a repair.
  k = jnp.asarray([[1] * 4 + [2] * 4])
  ok = jnp.ones((1, 8), bool)
  r = rewards.floor_solved(rewards.rank_rewards(k, ok), k <= 3)
  np.testing.assert_allclose(r[0], [4 / 7] * 4 + [0.0] * 4, atol=1e-6)
  failed = jnp.asarray([[1] * 4 + [4] * 4])
  r = rewards.floor_solved(rewards.rank_rewards(failed, ok), failed <= 3)
  assert (r[0, 4:] < 0).all()


def test_speed_is_the_second_key():
  # Turn 1 slow, turn 1 fast, turn 2 very fast, turn 1 not timed, failed.
  k = jnp.asarray([[1, 1, 2, 1, 4]])
  speedup = jnp.asarray([[1.0, 2.0, 50.0, 0.0, 9.0]])
  r = rewards.rank_rewards(
    rewards.speed_key(k, speedup, 3), jnp.ones((1, 5), bool)
  )
  np.testing.assert_allclose(r[0], [0.5, 1.0, -0.5, 0.0, -1.0])
  # 3 % is noise; and without a timer it is the rank of the turn.
  tied = rewards.speed_key(jnp.asarray([[1, 1]]), jnp.asarray([[1.0, 1.03]]), 3)
  assert float(tied[0, 0]) == float(tied[0, 1])


@hypothesis.given(groups)
@hypothesis.settings(deadline=None, max_examples=30)
def test_without_a_timer_the_speed_key_is_the_turns_rank(case):
  key, ok = (jnp.asarray(x) for x in case)
  untimed = rewards.speed_key(key, jnp.zeros(key.shape), 3)
  np.testing.assert_array_equal(ranked(untimed, ok), ranked(key, ok))


@hypothesis.given(groups)
@hypothesis.settings(deadline=None, max_examples=30)
def test_tiers_change_nothing_between_successes(case):
  key, ok = (jnp.asarray(x) for x in case)
  tiers = rewards.fail_tier_key(key, jnp.arange(14).reshape(2, 7) % 4, 3, 3)
  solved = (key <= 3) & ok
  np.testing.assert_allclose(
    np.where(solved, ranked(tiers, ok), 0),
    np.where(solved, ranked(key, ok), 0),
    atol=1e-6,
  )
