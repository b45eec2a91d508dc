"""Pictures of a table."""

import numpy as np
import pytest

from experiments import plots
from tests.experiments.sweep_results import climbing, load


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


def test_activation_by_difficulty_by_hand(folder):
  runs, _ = load(folder)
  rate, opened = plots.activation_by_difficulty(runs["leap"], 4)
  # Each seed: four visits, 20 of 32 failed, open three times.
  np.testing.assert_allclose(rate[2], 0.625)
  np.testing.assert_allclose(opened[2], 0.75)
  assert np.isnan(rate[[0, 1, 3]]).all()
