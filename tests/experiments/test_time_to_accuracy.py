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
  # 0 to 10 s: from 0 to 1; then 1. At 10 s over 1.5 s to either side.
  grid = np.linspace(0, 20, 401)
  kink = time_to_accuracy.Curve(grid, np.minimum(grid / 10, 1)[None])
  got = time_to_accuracy.smooth(kink)
  at = lambda cost: np.interp(cost, got.cost, got.accuracy[0])
  # A straight line stays, also at the end, where the window is shorter.
  for cost in (0, 1, 8.5, 12, 19, 20):
    assert at(cost) == pytest.approx(min(cost / 10, 1), abs=1e-6)
  # At the kink: half of the window is 1, the other half .925 on average.
  assert at(10) == pytest.approx((1 + 0.925) / 2, abs=1e-6)


def test_what_is_smoothed_off_leaves_the_ratio_of_paces():
  # An S, and the same three times as fast. Neither keeps its own 90 %.
  grid = np.linspace(0, 300, 3001)
  s_shape = lambda cost: 1 / (1 + np.exp(-(cost - 120) / 20))
  one, other = (
    time_to_accuracy.smooth(
      time_to_accuracy.Curve(grid, s_shape(pace * grid)[None])
    )
    for pace in (1, 3)
  )
  (used,), _ = time_to_accuracy.times(one, other, 0.9)
  assert used > 120 + 20 * np.log(9) + 1
  (got,) = time_to_accuracy.ratios(one, other, 0.9)
  assert got == pytest.approx(3, rel=2e-3)


def test_twice_as_fast_is_two(folder):
  runs, draws = load(folder)
  of = lambda base, row, **more: intervals.estimate(
    time_to_accuracy.compare(runs[base], runs[row], 1, 1.0, draws, **more)
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
  (got,) = time_to_accuracy.ratios(of(10.0), of(5.0), 0.9)
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
  assert raw.cost[0] == 0 and raw.cost[-1] == 30
  at = lambda cost, line: np.interp(cost, raw.cost, raw.accuracy[line])
  # One seed flattens only behind what both have reached.
  np.testing.assert_allclose(at([0, 10, 20], 0), [0, 0.25, 0.5], atol=0.01)
  at_end = time_to_accuracy.accuracy_at(runs, 1, "seconds", 30.0, draws)
  # .75 of the one; the other, on its way from .5 to 1, may be above the line.
  assert 0.75 <= at_end[0] <= 0.8
  # A draw of one seed alone is that seed's curve: a straight line.
  alone = int(np.flatnonzero(draws.by_seed[:, 1] == 0)[0])
  np.testing.assert_allclose(at([0, 5, 25, 30], alone), [0, 1 / 8, 5 / 8, 0.75])


def test_of_evaluations_at_the_same_cost_the_last_counts(tmp_path):
  line = [(0, 0), (10, 2), (10, 4), (20, 8)]
  rise = [(t, {"p": [n, 0, 0, 8 - n, 8]}) for t, n in line]
  put(tmp_path, BY_NAME["leap"], 0, rise)
  runs = records.load(tmp_path, [BY_NAME["leap"]], allow_mixed=False)["leap"]
  draws = intervals.draw({"leap": runs}, 1)
  raw = time_to_accuracy.curve(runs, 1, "seconds", draws)
  np.testing.assert_allclose(raw.accuracy[0], raw.cost / 20)


def test_how_many_gaps_the_target_is_away(folder):
  runs, draws = load(folder)
  of = lambda base, row: time_to_accuracy.gaps_to_target(
    runs[base], runs[row], 1, 0.9, draws
  )
  # Straight lines over two gaps each: nine tenths of them.
  assert of("grpo_multi_turn", "leap") == pytest.approx(1.8)
  # Multi-turn gets as far as LEAP in its own two.
  assert of("leap", "grpo_multi_turn") == pytest.approx(1.8)
  # A row that never gets there has no time.
  assert of("leap", "grpo_single_turn") == pytest.approx(1.8)
  assert math.isnan(of("grpo_single_turn", "leap"))


def test_rounding_is_no_gain(tmp_path):
  # Smoothing a constant leaves its last digits uncertain.
  flat = [(7.3 * i, {"p": [3, 0, 0, 4, 21]}) for i in range(40)]
  rise = [(7.3 * i, {"p": [min(i, 7), 0, 0, 7, 21]}) for i in range(40)]
  put(tmp_path, BY_NAME["grpo_multi_turn"], 0, flat)
  put(tmp_path, BY_NAME["leap"], 0, rise)
  runs, draws = load(tmp_path)
  one, other = runs["grpo_multi_turn"], runs["leap"]
  smooth = time_to_accuracy.smooth(
    time_to_accuracy.curve(one, 1, "seconds", draws)
  )
  assert 0 < np.ptp(smooth.accuracy[0]) < 1e-9
  assert np.isnan(time_to_accuracy.compare(one, other, 1, 1.0, draws)).all()
  assert math.isnan(time_to_accuracy.gaps_to_target(one, other, 1, 1.0, draws))


def test_a_row_that_starts_at_the_target_has_no_time(tmp_path):
  line = lambda *solved: [
    (10 * i, {"p": [n, 0, 0, 4 - n, 12]}) for i, n in enumerate(solved)
  ]
  put(tmp_path, BY_NAME["grpo_multi_turn"], 0, line(0, 1, 2))
  put(tmp_path, BY_NAME["leap"], 0, line(4, 4, 4))
  runs, draws = load(tmp_path)
  of = lambda gain: time_to_accuracy.gaps_to_target(
    runs["grpo_multi_turn"], runs["leap"], 1, gain, draws
  )
  assert of(0.9) == pytest.approx(1.8)  # the baseline's


_DIFFICULTY = np.random.default_rng(0).normal(0, 0.12, 48)


def plateau(seconds):
  """Nine tenths of the way at 138 s."""
  return 1 - np.exp(-seconds / 60)


def s_shape(seconds):
  """Nine tenths of the way at 152 s, one tenth at 77 s."""
  rise = lambda t: 1 / (1 + np.exp(-(t - 115) / 17))
  return rise(seconds) - rise(0)


def simulated(rng, before, law, pace, gap, growth):
  """Three runs of one law, 300 s long: 48 problems, 8 samples, seeds of sd .02.

  Args:
    rng: of everything.
    before: [3, 48] samples solved by the policy that all start from.
    law: seconds -> share of what there is to learn.
    pace: times as fast as the law.
    gap: seconds between evaluations, about, and at least `growth` of the time.
    growth: as config.eval.growth.
  """
  runs = []
  for seed in range(3):
    seconds = np.zeros(1)
    while seconds[-1] < 300:
      longer = max(gap, growth * seconds[-1]) * (1 + rng.normal(0, 0.1))
      seconds = np.append(seconds, seconds[-1] + longer)
    level = rng.normal(0, 0.02) * np.minimum(seconds / 60, 1)
    rise = 0.37 + 0.49 * law(pace * seconds) + level
    chance = rise[:, None] + _DIFFICULTY
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


def compared(law, pace, gaps, num_draws, repeats, gain=0.9, growth=0.0):
  """[repeats] estimates of the ratio of two rows of the same law."""
  found = []
  for repeat in range(repeats):
    rng = np.random.default_rng((1, repeat))
    before = rng.binomial(8, np.clip(0.37 + _DIFFICULTY, 0, 1), (3, 48))
    baseline = simulated(rng, before, law, 1.0, gaps[0], growth)
    method = simulated(rng, before, law, pace, gaps[1], growth)
    draws = intervals.draw({"b": baseline, "m": method}, num_draws)
    found.append(
      intervals.estimate(
        time_to_accuracy.compare(baseline, method, 1, gain, draws)
      )
    )
  return found


@pytest.mark.parametrize(
  "law,pace,gaps",
  [
    # Nor does it matter which is evaluated more often.
    (plateau, 1.0, (35, 17)),
    (s_shape, 1.0, (17, 35)),
    (s_shape, 1.5, (24, 24)),
    (s_shape, 2.0, (35, 17)),
    (plateau, 3.0, (35, 12)),
  ],
)
def test_two_rows_of_one_law_have_the_ratio_of_their_pace(law, pace, gaps):
  found = [e.value for e in compared(law, pace, gaps, 1, 60)]
  tolerance = 0.05 if pace == 1 else 0.08
  assert np.median(found) == pytest.approx(pace, rel=tolerance)
  # Nobody is told "never" by noise.
  assert np.mean(np.asarray(found) == 0) <= 0.02


@pytest.mark.parametrize("law,pace", [(plateau, 2.0), (s_shape, 3.0)])
def test_gaps_that_grow_with_time_do_as_well(law, pace):
  found = [e.value for e in compared(law, pace, (5, 3), 1, 60, growth=0.1)]
  assert np.median(found) == pytest.approx(pace, rel=0.05)
  assert np.mean(np.asarray(found) == 0) <= 0.02


def test_gaps_behind_the_target_do_not_count(tmp_path):
  rise = [(0, 0), (10, 2), (20, 4), (30, 6), (40, 8), (60, 8), (100, 8)]
  line = [(t, {"p": [n, 0, 0, 8 - n, 8]}) for t, n in rise]
  put(tmp_path, BY_NAME["leap"], 0, line)
  runs = records.load(tmp_path, [BY_NAME["leap"]], allow_mixed=False)["leap"]
  draws = intervals.draw({"leap": runs}, 1)
  gap = lambda until: time_to_accuracy.longest_gap(runs, "seconds", until)
  assert [gap(t) for t in (36, 40, 41, 61, np.inf)] == [10, 10, 20, 40, 40]
  # Nine tenths at about 36 s, with gaps of 10 s until then.
  got = time_to_accuracy.gaps_to_target(runs, runs, 1, 0.9, draws)
  assert 3.4 < got < 4.0


def test_the_interval_holds_the_truth():
  found = compared(s_shape, 2.0, (35, 17), 100, 80)
  assert np.mean([e.low <= 2 <= e.high for e in found]) >= 0.85
