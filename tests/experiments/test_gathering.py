"""Which problems a rollout and its refills meet."""

from types import SimpleNamespace

import pytest

from experiments import gathering
from leap_jax import history


@pytest.fixture
def run():
  """64 problems, eight a rollout; refills are allowed."""
  return SimpleNamespace(
    train=[SimpleNamespace(name=str(i)) for i in range(64)],
    config=SimpleNamespace(
      seed=3, rollout=SimpleNamespace(max_refill_rounds=2)
    ),
    shape=SimpleNamespace(num_problems=8),
    problems=history.History(),
  )


@pytest.mark.parametrize("sampling", gathering.SAMPLINGS)
def test_an_epoch_meets_every_problem_refills_or_not(run, sampling):
  # Eight draws, whichever of them are refills: one epoch.
  draw = gathering.SAMPLINGS[sampling]
  met = [card.name for _ in range(8) for card in draw(run)]
  assert sorted(met) == sorted(card.name for card in run.train)
  assert run.problems.cursor == 64
