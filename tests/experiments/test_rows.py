"""Rows of tables: each is a valid run, and unlike every other."""

import pathlib

import pytest

from experiments import rows, settings, sweep_plan
from leap_jax import methods

ROOT = pathlib.Path(__file__).parents[2]
QUICKSTART = str(ROOT / "experiments" / "configs" / "quickstart.py")


@pytest.mark.parametrize("row", rows.TABLES["all"], ids=lambda r: r.name)
def test_every_row_is_a_valid_run_of_its_own(row):
  config, _ = settings.parse(
    [
      "run",
      f"--config={QUICKSTART}",
      "--config.harness.executor=auto",  # a reward of times needs a GPU
      *(f"--config.{key}={value}" for key, value in row.settings.items()),
    ],
    lambda values: None,
  )
  got = settings.flat(config)
  assert {key: got[key] for key in row.settings} == dict(row.settings)
  others = [r for r in rows.TABLES["all"] if r is not row]
  change = lambda r: (dict(r.settings), dict(r.factors))
  assert all(change(other) != change(row) for other in others)
  assert all(other.name != row.name for other in others)


def test_a_row_that_needs_times_is_left_out_where_nothing_is_timed():
  names = lambda *of: {row.name for row in sweep_plan.chosen("reward", *of)}
  timed = "reward_rank_speed"
  assert names(None, "auto") - names(None, "cpu") == {timed}
  assert names(timed, "cpu") == {timed}  # by name: the run refuses it


def test_the_main_table_has_every_method():
  names = {row.settings["method.name"] for row in rows.TABLES["main"]}
  assert names == set(methods.METHODS)
