"""Pictures of a table."""

import dataclasses

import numpy as np
import pytest

from experiments import plots
from tests.experiments.sweep_results import BY_NAME, climbing, curve, load, put


@pytest.fixture
def folder(tmp_path):
  return climbing(tmp_path)


def test_pictures_of_a_table(folder, tmp_path):
  runs, draws = load(folder)
  paths = plots.draw(tmp_path / "pictures", "main", runs, draws)
  assert [path.name for path in paths] == [
    "main_accuracy.png",
    "main_step_time.png",
    "main_gate.png",
  ]
  assert all(path.stat().st_size > 10_000 for path in paths)


def problem(name, failures, activations, visits=1):
  return {
    "name": name,
    "visits": visits,
    "samples": 8 * visits,
    "failures": failures,
    "activations": activations,
  }


def test_activation_by_difficulty_by_hand(folder):
  runs, _ = load(folder)
  of = lambda seed, *problems: dataclasses.replace(
    runs["leap"][0], seed=seed, problems=list(problems)
  )
  leap = [
    # Open, since 8 of its own 8 failed; elsewhere 6 of 24 do.
    of(0, problem("a", 8, 1), problem("b", 6, 1), problem("alone", 4, 1)),
    of(1, problem("a", 2, 0), problem("b", 7, 1, visits=2)),
  ]
  others = [of(1, problem("a", 4, 0, visits=2)), of(2, problem("b", 1, 0))]
  rate, opened = plots.activation_by_difficulty(leap, leap + others, 4)
  # seed 0: a 6/24 and b 8/24, both in bin 1; seed 1: a 8/8 in bin 3, b 7/16 in
  # bin 1 (two visits, one open).
  np.testing.assert_allclose(rate[1], (6 / 24 + 8 / 24 + 2 * 7 / 16) / 4)
  np.testing.assert_allclose(opened[1], 3 / 4)
  assert rate[3] == 1 and opened[3] == 0
  assert np.isnan(rate[[0, 2]]).all()


def test_one_seed_tells_nothing_of_a_gate(tmp_path):
  for name in ("leap", "grpo_multi_turn"):
    put(tmp_path, BY_NAME[name], 0, curve(10, 0, 2, 4))
  paths = plots.draw(tmp_path / "pictures", "main", *load(tmp_path))
  assert [path.name for path in paths] == [
    "main_accuracy.png",
    "main_step_time.png",
  ]
