"""Credit of turns, and the methods on one group each."""

import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax import advantages, dcp, methods


def leap_of(outcomes, gamma, active=True):
  """Advantages [G, T] of one group of outcome lists."""
  correct = jnp.asarray([outcomes], bool)
  ok = jnp.ones(correct.shape[:2], bool)
  executed = dcp.executed_mask(correct, jnp.asarray([active]), ok)
  return np.asarray(advantages.leap(correct, executed, ok, gamma=gamma)[0])


# Four samples: solved at once; solved in turn 3; failed; solved in turn 2.
GROUP = [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 1, 0]]
# k = 1, 3, 4, 2 -> wins - losses = 3, -1, -3, 1 -> r = 1, -1/3, -1, 1/3


@pytest.mark.parametrize(
  "gamma,repaired",
  [
    (0.0, [0.0, 1 / 3, 0.0]),
    (0.4, [0.4 / 3, 1 / 3, 0.0]),
    (1.0, [1 / 3, 1 / 3, 0.0]),
  ],
)
def test_leap_by_hand(gamma, repaired):
  got = leap_of(GROUP, gamma)
  expected = [
    [1.0, 0.0, 0.0],  # one turn, the best
    [-1 / 3] * 3,  # beaten by two: negative on each of its turns
    [-1.0] * 3,  # failed
    repaired,  # reaches back from turn 2 with the discount
  ]
  np.testing.assert_allclose(got, expected, atol=1e-6)


def test_turns_that_did_not_run_have_no_advantage():
  got = leap_of(GROUP, 0.4, active=False)
  # Behind a closed gate only turn 1 exists: a success and three failures.
  np.testing.assert_allclose(got[:, 0], [1.0, -1 / 3, -1 / 3, -1 / 3])
  assert (got[:, 1:] == 0).all()


def test_a_failure_is_never_reinforced():
  rng = np.random.default_rng(0)
  for _ in range(50):
    outcomes = rng.random((8, 3)) < rng.random()
    got = leap_of(outcomes.tolist(), 0.4)
    failed = ~outcomes.any(-1)
    assert (got[failed] <= 1e-6).all()


def test_grpo_multi_turn_shares_the_terminal_reward():
  correct = jnp.asarray([[[0, 1, 0], [0, 0, 0]]], bool)
  ok = jnp.ones((1, 2), bool)
  executed = dcp.executed_mask(correct, jnp.asarray([True]), ok)
  got = advantages.grpo_multi_turn(correct, executed, ok)[0]
  # Rewards 1, 0: standardized 1, -1; the repaired sample ran two turns.
  np.testing.assert_allclose(got, [[1, 1, 0], [-1, -1, -1]], atol=1e-6)


def test_grpo_single_turn_looks_at_first_turns_only():
  correct = jnp.asarray([[[0, 1, 0], [1, 0, 0]]], bool)
  ok = jnp.ones((1, 2), bool)
  executed = dcp.executed_mask(correct, jnp.asarray([True]), ok)
  got = advantages.grpo_single_turn(correct, executed, ok)[0]
  np.testing.assert_allclose(got, [[-1, 0, 0], [1, 0, 0]], atol=1e-6)


def test_leap_on_single_turns_is_leave_one_out():
  correct = jnp.asarray([[[1], [0], [0], [1], [1]]], bool)
  ok = jnp.ones((1, 5), bool)
  executed = dcp.executed_mask(correct, jnp.asarray([False]), ok)
  got = advantages.leap(correct, executed, ok, gamma=0.4)[0, :, 0]
  # Three of five right: success 1 - 2/4, failure 0 - 3/4.
  np.testing.assert_allclose(got, [0.5, -0.75, -0.75, 0.5, 0.5], atol=1e-6)


@pytest.mark.parametrize("name", methods.METHODS)
def test_every_method_gives_zero_where_nothing_ran_or_counts(name):
  method = methods.METHODS[name](f_lo=0.5, f_hi=0.875, gamma=0.4)
  rng = np.random.default_rng(1)
  for _ in range(20):
    correct = jnp.asarray(rng.random((3, 4, 3)) < 0.4)
    ok = jnp.asarray(rng.random((3, 4)) < 0.8)
    active = method.gate(correct[..., 0], ok)
    executed = dcp.executed_mask(correct, active, ok)
    got = np.asarray(method.advantage(correct, executed, ok))
    assert got.shape == correct.shape
    assert np.isfinite(got).all()
    assert (got[~executed] == 0).all()
    assert (got[~ok] == 0).all()


@pytest.mark.parametrize("name", methods.METHODS)
@pytest.mark.parametrize("solved", [False, True])
@pytest.mark.covers("P01")
def test_a_group_without_spread_teaches_nothing(name, solved):
  method = methods.METHODS[name](f_lo=0.0, f_hi=1.0, gamma=0.4)
  correct = jnp.full((1, 8, 3), solved)
  ok = jnp.ones((1, 8), bool)
  active = method.gate(correct[..., 0], ok)
  executed = dcp.executed_mask(correct, active, ok)
  assert not np.asarray(method.advantage(correct, executed, ok)).any()
