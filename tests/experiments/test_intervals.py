"""Intervals: paired draws over problems and seeds."""

import math

import numpy as np
import pytest

from experiments import comparison, intervals
from tests.experiments.sweep_results import BY_NAME, climbing, curve, load, put


@pytest.fixture
def folder(tmp_path):
  return climbing(tmp_path)


def test_rates_of_totals_by_hand():
  # Ten samples: 4 at turn 1, 2 at turn 2, 1 at turn 3, 3 never; 18 turns.
  totals = np.asarray([[4.0, 2.0, 1.0, 3.0, 18.0]])
  accuracy = [intervals.accuracy(totals, t)[0] for t in (1, 2, 3)]
  np.testing.assert_allclose(accuracy, [0.4, 0.6, 0.7])
  assert np.isnan(intervals.accuracy(totals, 4))
  np.testing.assert_allclose(intervals.recovery(totals), [3 / 6])
  np.testing.assert_allclose(intervals.turns_per_pass(totals), [18 / 7])


def test_the_first_draw_is_the_plain_estimate(folder):
  runs, draws = load(folder)
  totals = intervals.heldout_totals(runs["leap"], -1, draws)
  # Two seeds; p 4 of 4, q 2 of 4: 6 of 8 each.
  assert totals[0].tolist() == [12, 0, 0, 4, 24]
  assert totals.shape == (201, 5)
  # Every draw has as many problems and seeds as there are.
  assert (draws.by_problem.sum(-1) == 2).all()
  assert (draws.by_seed.sum(-1) == 2).all()


def test_an_interval_is_of_problems_and_of_seeds(tmp_path):
  # Problem p is always solved, q never; or one seed all, the other nothing.
  half = {"p": [4, 0, 0, 0, 4], "q": [0, 0, 0, 4, 12]}
  put(tmp_path, BY_NAME["leap"], 0, [(0, half), (1, half)])
  runs, draws = load(tmp_path)
  accuracy = intervals.accuracy(
    intervals.heldout_totals(runs["leap"], -1, draws), 1
  )
  # Both, one or the other: 1/4, 1/2, 1/4 of the draws.
  assert intervals.estimate(accuracy) == (0.5, 0.0, 1.0)
  whole = {"p": [4, 0, 0, 0, 4], "q": [4, 0, 0, 0, 4]}
  none = {"p": [0, 0, 0, 4, 12], "q": [0, 0, 0, 4, 12]}
  put(tmp_path, BY_NAME["leap"], 0, [(0, whole), (1, whole)])
  put(tmp_path, BY_NAME["leap"], 1, [(0, none), (1, none)])
  runs, draws = load(tmp_path)
  accuracy = intervals.accuracy(
    intervals.heldout_totals(runs["leap"], -1, draws), 1
  )
  assert intervals.estimate(accuracy) == (0.5, 0.0, 1.0)


def test_what_is_said_of_few_seeds_is_so(folder):
  rng = np.random.default_rng(0)
  for number, held in intervals.HELD.items():
    values = rng.normal(size=(1000, number))
    drawn = rng.integers(0, number, (intervals.NUM_DRAWS, number))
    low, high = np.percentile(values[:, drawn].mean(-1), [2.5, 97.5], axis=1)
    assert 100 * ((low <= 0) & (high >= 0)).mean() == pytest.approx(held, abs=4)
  _, draws = load(folder)
  assert "about 49 of 100 cases" in intervals.told_of_seeds(draws)
  assert "one seed" in intervals.told_of_seeds(draws._replace(seeds=(0,)))
  assert not intervals.told_of_seeds(draws._replace(seeds=tuple(range(6))))


def test_a_difference_is_paired(folder):
  runs, draws = load(folder)
  found = comparison.estimates("main", runs, draws)
  # The same counts: whatever is drawn, the difference is nothing.
  assert found["grpo_multi_turn"]["acc_at_1_minus_leap"] == (0, 0, 0)
  worse = found["grpo_single_turn"]["acc_at_1_minus_leap"]
  assert worse.value == -75 and worse.high < 0
  assert math.isnan(found["leap"]["acc_at_1_minus_leap"].value)


def test_a_difference_is_of_the_seeds_that_both_have(folder):
  put(folder, BY_NAME["leap"], 2, curve(10, 0, 0, 0))
  runs, draws = load(folder)
  found = comparison.estimates("main", runs, draws)
  assert found["leap"]["acc_at_1"].value == 50
  assert found["grpo_multi_turn"]["acc_at_1_minus_leap"].value == 0


def test_numbers_without_a_value_are_left_out():
  assert intervals.estimate(np.asarray([1.0, np.nan, 3.0])) == (1, 3, 3)
  nothing = intervals.estimate(np.asarray([np.nan, 1.0]))
  assert all(math.isnan(x) for x in nothing)
