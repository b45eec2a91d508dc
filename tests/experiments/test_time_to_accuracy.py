"""Time to accuracy: curves, targets, ratios."""

import math
import pathlib

import numpy as np
import pytest

from experiments import intervals, records, time_to_accuracy
from tests.experiments.sweep_results import BY_NAME, climbing, load, put


@pytest.fixture
def folder(tmp_path):
  return climbing(tmp_path)


@pytest.mark.parametrize(
  "accuracy,target,expected",
  [
    ([0.0, 0.5, 1.0], 0.75, 15.0),  # half of the way from 10 to 20
    ([0.0, 0.5, 1.0], 0.5, 10.0),
    ([0.6, 0.5, 1.0], 0.5, 0.0),
    ([0.0, 0.5, 0.4], 0.6, np.inf),
    ([0.0, 0.8, 0.1], 0.4, 5.0),  # the first time, not the last
  ],
)
def test_when_a_value_is_first_reached(accuracy, target, expected):
  cost = np.asarray([0.0, 10.0, 20.0])
  got = time_to_accuracy.first_reached(cost, np.asarray(accuracy), target)
  assert got == pytest.approx(expected)


def test_smoothing_by_hand():
  # 0 to 10 s: from 0 to 1; then 1. Half width 4.
  kink = time_to_accuracy.Curve(
    np.asarray([0.0, 10.0, 20.0]), np.asarray([[0.0, 1.0, 1.0]])
  )
  got = time_to_accuracy.smooth(kink, 4.0)
  at = lambda cost: np.interp(cost, got.cost, got.accuracy[0])
  # A straight line stays, also near the ends, where the window is shorter.
  for cost in (0, 1, 5.5, 14.5, 19, 20):
    assert at(cost) == pytest.approx(min(cost / 10, 1), abs=1e-3)
  # At the kink: half of the window is 1, the other half .8 on average.
  assert at(10) == pytest.approx(0.9, abs=1e-3)


def test_twice_as_fast_is_two(folder):
  runs, draws = load(folder)
  of = lambda base, row, **more: intervals.estimate(
    time_to_accuracy.compare(runs[base], runs[row], 1, draws, **more)
  )
  assert of("grpo_multi_turn", "leap") == pytest.approx((2, 2, 2))
  assert of("leap", "grpo_multi_turn").value == pytest.approx(0.5)
  # The same curve over tokens and calls.
  assert of("grpo_multi_turn", "leap", cost="tokens").value == 1
  assert of("grpo_multi_turn", "leap", cost="harness_calls").value == 1
  # Never gets there; and there is nothing to reach.
  assert of("leap", "grpo_single_turn") == (0, 0, 0)
  assert math.isnan(of("grpo_single_turn", "leap").value)


def test_the_target_is_a_share_of_the_gain():
  # Straight to 1 in 10 s, and in 5 s. From .5 (the begin) nine tenths of the
  # gain are .95: 9 s and 4.5 s.
  accuracy = np.asarray([[0.5, 1.0, 1.0]])
  of = lambda seconds: time_to_accuracy.Curve(
    np.asarray([0.0, seconds, 20.0]), accuracy
  )
  (got,) = time_to_accuracy.ratios(of(10.0), of(5.0))
  assert got == pytest.approx(2)
  # A method whose plateau is a point lower gets there for q = .9 alone.
  lower = time_to_accuracy.Curve(
    np.asarray([0.0, 10.0, 20.0]), np.asarray([[0.5, 0.98, 0.98]])
  )
  got = [time_to_accuracy.ratios(of(10.0), lower, q)[0] for q in (0.9, 1.0)]
  assert got == [pytest.approx(9 / 9.375), 0]


def test_seeds_are_averaged_at_equal_cost(tmp_path):
  # Both rise by 1/4 every 10 s; one is evaluated every 10 s, the other every
  # 20 s and at its end. Place by place, 20 s would meet 10 s.
  rise = lambda times: [
    (t, {"p": [2 * i, 0, 0, 8 - 2 * i, 8]}) for t, i in times
  ]
  put(tmp_path, BY_NAME["leap"], 0, rise([(0, 0), (10, 1), (20, 2), (30, 3)]))
  put(tmp_path, BY_NAME["leap"], 1, rise([(0, 0), (20, 2), (40, 4), (50, 4)]))
  runs = records.load(tmp_path, [BY_NAME["leap"]], allow_mixed=False)
  draws = intervals.draw(runs, 50)
  runs = runs["leap"]
  raw = time_to_accuracy.curve(runs, 1, "seconds", draws)
  np.testing.assert_allclose(raw.cost, [0, 10, 20, 30])
  np.testing.assert_allclose(raw.accuracy[0], [0, 0.25, 0.5, 0.75])
  at = time_to_accuracy.accuracy_at(runs, 1, "seconds", 25.0, draws)
  assert at[0] == pytest.approx(0.625)
  # A draw of one seed alone is that seed's curve.
  alone = int(np.flatnonzero(draws.by_seed[:, 1] == 0)[0])
  np.testing.assert_allclose(raw.accuracy[alone], [0, 0.25, 0.5, 0.75])


_DIFFICULTY = np.random.default_rng(0).normal(0, 0.12, 48)


def simulated(rng, before, pace, gap):
  """Three runs of one law, 300 s long: 48 problems, 8 samples, seeds of sd .02.

  Args:
    rng: of everything.
    before: [3, 48] samples solved by the policy that all start from.
    pace: times as fast as the law.
    gap: seconds between evaluations.
  """
  seconds = np.arange(0, 301, gap)
  rise = 1 - np.exp(-seconds * pace / 60)
  runs = []
  for seed in range(3):
    level = rng.normal(0, 0.02) * np.minimum(seconds / 60, 1)
    chance = (0.37 + 0.49 * rise + level)[:, None] + _DIFFICULTY
    solved = rng.binomial(8, np.clip(chance, 0.02, 0.98))
    solved[0] = before[seed]
    evaluations = [
      {
        "seconds": float(second),
        "problems": {
          str(p): [int(n), 0, 0, 8 - int(n), 8] for p, n in enumerate(line)
        },
      }
      for second, line in zip(seconds, solved, strict=True)
    ]
    runs.append(
      records.Record(pathlib.Path(), seed, {}, [], evaluations, [], [])
    )
  return runs


@pytest.mark.parametrize(
  "pace,gaps",
  [
    (1.0, (30, 30)),
    # Nor does it matter that the one is evaluated more often.
    (1.0, (50, 25)),
    (1.5, (20, 15)),
  ],
)
def test_two_methods_of_one_law_have_the_ratio_of_their_pace(pace, gaps):
  found = []
  for repeat in range(100):
    rng = np.random.default_rng((1, repeat))
    before = rng.binomial(8, np.clip(0.37 + _DIFFICULTY, 0, 1), (3, 48))
    runs = {
      "baseline": simulated(rng, before, 1.0, gaps[0]),
      "method": simulated(rng, before, pace, gaps[1]),
    }
    draws = intervals.draw(runs, 1)
    ratios = time_to_accuracy.compare(*runs.values(), 1, draws)
    found.append(ratios[0])
  assert 0.95 * pace <= np.median(found) <= 1.05 * pace
  # Nobody is told "never" by noise.
  assert np.mean(np.asarray(found) == 0) <= 0.02
