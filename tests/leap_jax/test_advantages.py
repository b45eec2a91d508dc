"""Credit of turns, and the methods on one group each."""

import functools

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis.extra import numpy as hnp

from leap_jax import dcp, methods
from leap_jax.types import Outcomes


def outcomes_of(correct, active, ok=None, **others):
  """Outcomes of [P, G, T] masks, executed as the gate's decision allows."""
  correct = jnp.asarray(correct, bool)
  ok = jnp.ones(correct.shape[:2], bool) if ok is None else jnp.asarray(ok)
  executed = dcp.executed_mask(correct, jnp.asarray(active), ok)
  zeros = jnp.zeros(correct.shape)
  return Outcomes(
    correct,
    executed,
    ok,
    jnp.asarray(others.get("speedup", zeros), jnp.float32),
    jnp.asarray(others.get("progress", zeros), jnp.int32),
  )


@functools.cache  # compiled once
def method(name, **parts):
  settings = {"f_lo": 0.5, "f_hi": 0.875, "gamma": 0.4}
  return methods.make_method(name, **(settings | parts))


def of_group(name, outcomes, active=True, **parts):
  """Advantages [G, T] of one group of outcome lists."""
  got = method(name, **parts).advantage(outcomes_of([outcomes], [active]))
  return np.asarray(got[0])


def leap_of(outcomes, gamma, active=True):
  return of_group("leap", outcomes, active, gamma=gamma)


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
  got = of_group("grpo_multi_turn", [[0, 1, 0], [0, 0, 0]])
  # Rewards 1, 0: standardized 1, -1; the repaired sample ran two turns.
  np.testing.assert_allclose(got, [[1, 1, 0], [-1, -1, -1]], atol=1e-6)


def test_grpo_single_turn_looks_at_first_turns_only():
  got = of_group("grpo_single_turn", [[0, 1, 0], [1, 0, 0]])
  np.testing.assert_allclose(got, [[-1, 0, 0], [1, 0, 0]], atol=1e-6)


def test_kevin_by_hand():
  # GROUP with gamma .4: returns 1 | .16 .4 1 | 0 0 0 | .4 1: nine turns, sum
  # 3.96, sum of squares 1 + .0256 + .16 + 1 + .16 + 1 = 3.3456;
  # mean .44, variance .37173 - .1936 = .17813, deviation .42206.
  got = of_group("kevin", GROUP)
  returns = np.asarray([[1, 0, 0], [0.16, 0.4, 1], [0, 0, 0], [0.4, 1, 0]])
  ran = np.asarray([[1, 0, 0], [1, 1, 1], [1, 1, 1], [1, 1, 0]])
  np.testing.assert_allclose(got, (returns - 0.44) / 0.42206 * ran, atol=1e-4)


def test_murphy_by_hand():
  got = of_group("murphy", GROUP)
  # Turn 1: 1, 1, 0, 1: mean .75, deviation .43301. Turn 2 of three: 1, 0, 1:
  # mean 2/3, deviation .47140. Turn 3 of two: 1, 0.
  expected = [
    [0.57735, 0, 0],
    [0.57735, 0.70711, 1],
    [-1.73205, -1.41421, -1],
    [0.57735, 0.70711, 0],
  ]
  np.testing.assert_allclose(got, expected, atol=1e-5)


def test_trloo_by_hand():
  got = of_group("trloo", GROUP)
  # Turn 1: 1 - 2/3 and 0 - 3/3. Turn 2 of three: 1 - 1/2 and 0 - 1. Turn 3 of
  # two: 1 - 0 and 0 - 1.
  expected = [
    [1 / 3, 0, 0],
    [1 / 3, 1 / 2, 1],
    [-1, -1, -1],
    [1 / 3, 1 / 2, 0],
  ]
  np.testing.assert_allclose(got, expected, atol=1e-6)
  # A turn that one sample alone ran has nothing to be compared with.
  got = of_group("trloo", [[1, 0], [0, 1]])
  np.testing.assert_allclose(got, [[0, 0], [0, 1]], atol=1e-6)


def test_trloo_is_the_centred_return_stretched():
  # N / (N - 1) (G - mean): the identity of the paper, at turn 1 of GROUP.
  got = of_group("trloo", GROUP)[:, 0]
  np.testing.assert_allclose(got, 4 / 3 * (np.asarray([1, 1, 0, 1]) - 0.75))


def test_prime_echo_pays_first_turns_alone():
  got = of_group("prime_echo", GROUP)
  # 1.15, .25, 0, .33 standardized: mean .4325, deviation .43176.
  np.testing.assert_allclose(
    got[:, 0],
    (np.asarray([1.15, 0.25, 0, 0.33]) - 0.4325) / 0.43176,
    atol=1e-4,
  )
  assert not got[:, 1:].any()


@pytest.mark.parametrize(
  "credit,third",
  [
    # r = -1 of the failed sample, r = 1/3 of the one that turn 2 solved.
    ("discounted", [[-1, -1, -1], [0.4 / 3, 1 / 3, 0]]),
    ("discounted_last", [[0, 0, -1], [0.4 / 3, 1 / 3, 0]]),
    ("shared", [[-1, -1, -1], [1 / 3, 1 / 3, 0]]),
    ("first_turn", [[-1, 0, 0], [1 / 3, 0, 0]]),
  ],
)
def test_credits_by_hand(credit, third):
  got = of_group("leap", GROUP, credit=credit)
  np.testing.assert_allclose(got[2:], third, atol=1e-6)


def test_a_negative_reward_on_the_last_turn_is_on_the_last_that_ran():
  got = of_group("leap", GROUP, credit="discounted_last")
  # Solved in turn 3 but beaten by two: -1/3 there alone.
  np.testing.assert_allclose(got[1], [0, 0, -1 / 3], atol=1e-6)
  got = of_group("leap", GROUP, active=False, credit="discounted_last")
  np.testing.assert_allclose(got[:, 0], [1, -1 / 3, -1 / 3, -1 / 3], atol=1e-6)


def test_speed_and_progress_reach_the_rewards():
  correct = [[[1, 0], [1, 0], [0, 0], [0, 0]]]
  speedup = [[[1, 0], [3, 0], [0, 0], [0, 0]]]
  progress = [[[3, 0], [3, 0], [3, 0], [3, 1]]]
  outcomes = outcomes_of(correct, [True], speedup=speedup, progress=progress)
  fast = method("leap", reward="rank_speed").advantage(outcomes)[0]
  np.testing.assert_allclose(fast[:, 0], [1 / 3, 1, -2 / 3, -2 / 3], atol=1e-6)
  # Failures rank by their last turn: not run to its end, not compiled. The
  # better one of them beats one and loses to two.
  tiers = method("leap", reward="rank_fail_tiers").advantage(outcomes)[0]
  np.testing.assert_allclose(tiers[:, 0], [2 / 3, 2 / 3, -1, -1 / 3], atol=1e-6)


# One shape each: another one would compile everything again.
@hypothesis.given(hnp.arrays(bool, (3, 6, 1)), hnp.arrays(bool, (3, 6)))
@hypothesis.settings(deadline=None, max_examples=40)
def test_leap_on_single_turns_is_leave_one_out(correct, ok):
  outcomes = outcomes_of(correct, np.zeros(3, bool), ok)
  np.testing.assert_allclose(
    RANK_ONE.advantage(outcomes), LOO_ONE.advantage(outcomes), atol=1e-6
  )


RANK_ONE = method("leap")
LOO_ONE = method("leap", reward="solved_loo", credit="shared")
NAMES = list(methods.METHODS)
MADE = {
  **{name: method(name) for name in NAMES},
  **{f"leap/{r}": method("leap", reward=r) for r in list(methods.REWARDS)[1:]},
  **{f"leap/{c}": method("leap", credit=c) for c in list(methods.CREDITS)[1:]},
}
STATUSES = hnp.arrays(np.int32, (3, 4, 3), elements=st.integers(0, 3))


@pytest.mark.parametrize("name", MADE)
def test_every_method_gives_zero_where_nothing_ran_or_counts(name):
  made = MADE[name]
  rng = np.random.default_rng(1)
  for _ in range(20):
    correct = jnp.asarray(rng.random((3, 4, 3)) < 0.4)
    ok = jnp.asarray(rng.random((3, 4)) < 0.8)
    active = made.gate(jax.random.key(0), jnp.full(3, 0.5), correct[..., 0], ok)
    outcomes = outcomes_of(
      correct,
      active,
      ok,
      speedup=rng.random((3, 4, 3)),
      progress=rng.integers(0, 4, (3, 4, 3)),
    )
    got = np.asarray(made.advantage(outcomes))
    assert got.shape == correct.shape and got.dtype == np.float32
    assert np.isfinite(got).all()
    assert (got[~outcomes.executed] == 0).all()
    assert (got[~ok] == 0).all()


@hypothesis.given(
  hnp.arrays(bool, (3, 4, 3)), hnp.arrays(bool, (3, 4)), STATUSES
)
@hypothesis.settings(deadline=None, max_examples=20)
def test_no_method_reinforces_a_sample_that_failed(correct, ok, progress):
  outcomes = outcomes_of(correct, np.ones(3, bool), ok, progress=progress)
  failed = ~np.asarray((outcomes.correct & outcomes.executed).any(-1))
  for name, made in MADE.items():
    got = np.asarray(made.advantage(outcomes))
    assert (got[failed] <= 1e-5).all(), name


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("solved", [False, True])
@pytest.mark.covers("P01")
def test_a_group_without_spread_teaches_nothing(name, solved):
  correct = np.full((3, 4, 3), solved)
  outcomes = outcomes_of(correct, np.ones(3, bool))
  assert not np.asarray(MADE[name].advantage(outcomes)).any()


def test_every_method_follows_a_permutation_of_the_group():
  rng = np.random.default_rng(2)
  correct, ok = rng.random((3, 4, 3)) < 0.4, rng.random((3, 4)) < 0.9
  order = [2, 0, 3, 1]
  for name, made in MADE.items():
    one = made.advantage(outcomes_of(correct, np.ones(3, bool), ok))
    other = made.advantage(
      outcomes_of(correct[:, order], np.ones(3, bool), ok[:, order])
    )
    np.testing.assert_allclose(one[:, order], other, atol=1e-5, err_msg=name)
