"""The gate and the executed mask, by hand and by property."""

import functools

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis.extra import numpy as hnp

from leap_jax import dcp, methods


def first_turns(num_failed, size=8):
  """[1, size]: so many failures, then successes."""
  return jnp.asarray([[i >= num_failed for i in range(size)]])


ALL_OK = jnp.ones((1, 8), bool)

# Failures of 8:      0  1  2  3  4  5  6  7  8
GATES = {
  (0.5, 0.875):      [0, 0, 0, 0, 1, 1, 1, 1, 0],
  (0.5, 1.0):        [0, 0, 0, 0, 1, 1, 1, 1, 1],
  (0.0, 1.0):        [0, 1, 1, 1, 1, 1, 1, 1, 1],
  (0.0, 0.49):       [0, 1, 1, 1, 0, 0, 0, 0, 0],
  (0.25, 0.75):      [0, 0, 1, 1, 1, 1, 1, 0, 0],
  (1.0, 1.0):        [0, 0, 0, 0, 0, 0, 0, 0, 1],
}  # fmt: skip


@pytest.mark.parametrize("bounds", GATES, ids=str)
def test_gate_opens_for_the_failures_between_its_bounds(bounds):
  f_lo, f_hi = bounds
  for num_failed, expected in enumerate(GATES[bounds]):
    active = dcp.difficulty_gate(
      first_turns(num_failed), ALL_OK, f_lo=f_lo, f_hi=f_hi
    )
    assert bool(active[0]) == bool(expected), num_failed


def test_samples_lost_to_the_harness_do_not_count():
  # Two of eight are lost. Of the six that count three failed: 3 = ceil(.5 * 6),
  # open. With the lost ones as failures it would be 5 of 8, as well open; with
  # four lost failures and all others right nothing failed: closed.
  correct = jnp.asarray([[False] * 5 + [True] * 3])
  ok = jnp.asarray([[False, False] + [True] * 6])
  assert bool(dcp.difficulty_gate(correct, ok, f_lo=0.5, f_hi=0.5)[0])
  correct = jnp.asarray([[False] * 4 + [True] * 4])
  ok = jnp.asarray([[False] * 4 + [True] * 4])
  assert not bool(dcp.difficulty_gate(correct, ok, f_lo=0.0, f_hi=1.0)[0])


def test_a_group_that_is_lost_entirely_stays_closed():
  nothing = jnp.zeros((1, 8), bool)
  for gate in (
    lambda c, o: dcp.difficulty_gate(c, o, f_lo=0.0, f_hi=1.0),
    dcp.open_gate,
    dcp.closed_gate,
  ):
    assert not bool(gate(nothing, nothing)[0])


@pytest.mark.parametrize("size", [3, 4, 5, 8, 16, 20])
def test_product_of_fraction_and_size_is_exact(size):
  # floor(.875 * 8) is 7 also in float32, and ceil(.35 * 20) is 7, although
  # .35 * 20 is 7.000000000000001 in double precision.
  for k in range(size + 1):
    f = k / size
    active = dcp.difficulty_gate(
      first_turns(k, size), jnp.ones((1, size), bool), f_lo=f, f_hi=f
    )
    assert bool(active[0]) == (k > 0)


# Failures of 8:         0  1  2  3  4  5  6  7  8
NAMED_GATES = {
  "easy":                 [0, 1, 1, 1, 0, 0, 0, 0, 0],
  "hard":                 [0, 0, 0, 0, 1, 1, 1, 1, 1],
  "hard_not_hopeless":    [0, 0, 0, 0, 1, 1, 1, 1, 0],
  "band":                 [0, 0, 1, 1, 1, 1, 1, 0, 0],
  "difficulty":           [0, 0, 0, 0, 1, 1, 1, 1, 0],
  "open":                 [0, 1, 1, 1, 1, 1, 1, 1, 1],
  "closed":               [0, 0, 0, 0, 0, 0, 0, 0, 0],
  # The rate that it is given is that of this group.
  "smoothed":             [0, 0, 0, 0, 1, 1, 1, 1, 0],
}  # fmt: skip

# Every number of failures at once: nine problems.
NINE = jnp.concatenate([first_turns(n) for n in range(9)])


@pytest.mark.parametrize("name", NAMED_GATES)
def test_named_gates_by_hand(name):
  gate = methods.GATES[name](0.5, 0.875)
  rate = jnp.arange(9.0) / 8
  got = gate(jax.random.key(0), rate, NINE, jnp.ones((9, 8), bool))
  assert got.astype(int).tolist() == NAMED_GATES[name]


def test_easy_and_hard_share_out_the_groups_with_a_failure():
  for size in (4, 7):
    correct = jnp.concatenate([first_turns(n, size) for n in range(size + 1)])
    ok = jnp.ones((size + 1, size), bool)
    easy, hard = dcp.easy_gate(correct, ok), dcp.hard_gate(correct, ok)
    assert (easy ^ hard).tolist() == [False] + [True] * size


def test_a_random_gate_opens_as_often_where_there_is_something_to_debug():
  ok = jnp.ones((9, 8), bool)
  gate = jax.jit(functools.partial(dcp.random_gate, f_lo=0.5, f_hi=0.875))
  opened = np.zeros(9)
  for seed in range(200):
    active = np.asarray(gate(jax.random.key(seed), NINE, ok))
    assert active.sum() == 4  # those of `difficulty` above
    opened += active
  assert opened[0] == 0
  # 4 of 8 by lot: 100 of 200 each, with a deviation of 7.1.
  assert (np.abs(opened[1:] - 100) < 36).all(), opened
  # The same key, the same lot.
  again = [gate(jax.random.key(3), NINE, ok).tolist() for _ in range(2)]
  assert again[0] == again[1]


def test_a_smoothed_gate_remembers():
  ok = jnp.ones((9, 8), bool)
  gate = functools.partial(dcp.smoothed_gate, f_lo=0.5, f_hi=0.875)
  # Hard so far, whatever this group says; without a failure nothing to debug.
  assert gate(jnp.full(9, 0.5), NINE, ok).tolist() == [False] + [True] * 8
  assert not gate(jnp.full(9, 0.49), NINE, ok).any()
  assert not gate(jnp.full(9, jnp.nan), NINE, ok).any()


def test_open_and_closed_gates():
  correct = jnp.asarray([[True, True], [True, False], [False, False]])
  ok = jnp.ones((3, 2), bool)
  assert dcp.open_gate(correct, ok).tolist() == [False, True, True]
  assert dcp.closed_gate(correct, ok).tolist() == [False] * 3


def test_executed_mask_by_hand():
  # One open and one closed problem, three samples each, three turns.
  outcome = [
    [True, False, False],  # solved at once: one turn
    [False, True, False],  # solved in turn 2: two turns
    [False, False, False],  # never: all three if open
  ]
  correct = jnp.asarray([outcome, outcome])
  ok = jnp.asarray([[True, True, True], [True, True, False]])
  executed = dcp.executed_mask(correct, jnp.asarray([True, False]), ok)
  assert executed.tolist() == [
    [[True, False, False], [True, True, False], [True, True, True]],
    # The closed problem runs one turn; its lost sample none at all.
    [[True, False, False], [True, False, False], [False, False, False]],
  ]


def test_outcomes_behind_a_closed_gate_are_not_believed():
  correct = jnp.asarray([[[False, True, False]]])
  closed, ok = jnp.asarray([False]), jnp.asarray([[True]])
  executed = dcp.executed_mask(correct, closed, ok)
  assert executed.tolist() == [[[True, False, False]]]
  assert dcp.solved_at(correct, executed).tolist() == [[4]]


def test_first_solved_turn_by_hand():
  correct = jnp.asarray(
    [[[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0], [0, 1, 1]]], bool
  )
  everything = jnp.ones_like(correct)
  assert dcp.solved_at(correct, everything).tolist() == [[1, 2, 3, 4, 2]]


# One shape: another one would compile everything again.
outcomes = st.tuples(
  hnp.arrays(bool, (3, 4, 3)),
  hnp.arrays(bool, (3, 4)),
  hnp.arrays(bool, (3,)),
)  # correct [P, G, T], ok [P, G], active [P]


@hypothesis.given(outcomes)
@hypothesis.settings(deadline=None, max_examples=60)
def test_executed_turns_are_a_prefix_that_ends_with_success(case):
  correct, ok, active = case
  executed = np.asarray(
    dcp.executed_mask(*(jnp.asarray(x) for x in (correct, active, ok)))
  )
  # A plain loop says the same.
  expected = np.zeros_like(correct)
  for p, g in np.ndindex(ok.shape):
    for t in range(correct.shape[-1]):
      solved = correct[p, g, :t][expected[p, g, :t]].any()
      expected[p, g, t] = ok[p, g] and (t == 0 or active[p]) and not solved
  np.testing.assert_array_equal(executed, expected)


@hypothesis.given(outcomes)
@hypothesis.settings(deadline=None, max_examples=30)
def test_jit_and_vmap_change_nothing(case):
  correct, ok, active = (jnp.asarray(x) for x in case)
  plain = dcp.executed_mask(correct, active, ok)
  jitted = jax.jit(dcp.executed_mask)(correct, active, ok)
  np.testing.assert_array_equal(plain, jitted)
  one = lambda c, a, o: dcp.executed_mask(c[None], a[None], o[None])[0]
  np.testing.assert_array_equal(plain, jax.vmap(one)(correct, active, ok))
