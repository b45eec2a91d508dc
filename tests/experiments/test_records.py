"""Which runs make a table, and which are refused."""

import json

import pytest

from experiments import comparison, headline, records, tables, workdir
from tests.experiments.sweep_results import BY_NAME, climbing, curve, load, put


@pytest.fixture
def folder(tmp_path):
  return climbing(tmp_path)


@pytest.mark.parametrize("key", ["commit", "hardware"])
def test_origins_are_not_mixed_silently(folder, capsys, key):
  put(folder, BY_NAME["kevin"], 0, curve(10, 0, 2, 4), **{key: "other"})
  arguments = ["--table=main", f"--runs={folder}"]
  assert tables.main(arguments) == 2
  line = capsys.readouterr().err
  assert f"{key} " in line and "--allow_mixed" in line
  assert tables.main([*arguments, "--allow_mixed"]) == 0
  assert f"MIXED: runs of 2 kinds of {key}" in capsys.readouterr().out


def test_rows_of_one_seed_have_one_cold_start(folder, capsys):
  def forked(row, seed, digest):
    path = folder / row / f"seed{seed}" / workdir.FORKED_FROM
    path.write_text(json.dumps({"checkpoint_sha256": digest}))

  for row in ("leap", "grpo_multi_turn", "grpo_single_turn"):
    forked(row, 0, "a" * 64)
  load(folder)  # the other seed has none, in any row
  forked("leap", 1, "b" * 64)
  arguments = ["--table=main", f"--runs={folder}", "--allow_mixed"]
  assert tables.main(arguments) == 2
  line = capsys.readouterr().err
  assert "cold start bbbbbbbbbbbb" in line and "no other run's" in line
  assert "experiments.fork" in line
  for row in ("grpo_multi_turn", "grpo_single_turn"):
    forked(row, 1, "b" * 64)
  load(folder)  # seeds may have different ones
  every = lambda: [r for found in load(folder)[0].values() for r in found]
  assert records.told_of_cold_starts(every()) == ""
  for row in ("leap", "grpo_multi_turn", "grpo_single_turn"):
    forked(row, 1, "a" * 64)
  told = "2 seeds go on from 1 cold start: intervals are of training alone."
  assert records.told_of_cold_starts(every()) == f" {told}"
  assert told in comparison.markdown("main", *load(folder))
  assert told in headline.markdown(
    headline.record_of(folder, allow_mixed=False)
  )
  forked("leap", 1, "c" * 64)
  with pytest.raises(records.TableError, match="cold start cccccccccccc"):
    load(folder)
  (folder / "leap" / "seed1" / workdir.FORKED_FROM).write_text("{")
  with pytest.raises(records.TableError, match="not readable"):
    load(folder)


def test_runs_that_are_not_alike_are_refused(folder):
  kevin = BY_NAME["kevin"]
  put(folder, kevin, 0, curve(10, 0, 2, 4), **{"learner.clip_low": 0.3})
  with pytest.raises(records.TableError, match="learner.clip_low=0.2"):
    load(folder)
  put(folder, kevin, 0, curve(10, 0, 2, 4, 4, 4))
  with pytest.raises(records.TableError, match="unequal budgets"):
    load(folder)
  put(folder, kevin, 0, curve(10, 0, 2, 4), **{"method.gate": "easy"})
  with pytest.raises(records.TableError, match="gate=easy, its folder of own"):
    load(folder)
  path = put(folder, kevin, 0, curve(10, 0, 2, 4))
  (path / "heldout.jsonl.gz").unlink()
  with pytest.raises(records.TableError, match="heldout.jsonl.gz"):
    load(folder)


def test_rows_of_the_same_time_need_not_have_the_same_iterations(tmp_path):
  limit = {"run.max_training_s": 30.0}
  put(tmp_path, BY_NAME["leap"], 0, curve(10, 0, 2, 4, 4), **limit)
  put(tmp_path, BY_NAME["kevin"], 0, curve(15, 0, 2, 4), **limit)
  text = comparison.markdown("main", *load(tmp_path))
  assert "seeds 0; 30 s of training." in text
  put(
    tmp_path,
    BY_NAME["murphy"],
    0,
    curve(5, 0, 2),
    **{"run.max_training_s": 5.0},
  )
  with pytest.raises(records.TableError, match="max_training_s=30.0"):
    load(tmp_path)


def test_a_row_may_change_gamma_and_others_may_not(tmp_path):
  put(tmp_path, BY_NAME["leap"], 0, curve(10, 0, 2))
  put(tmp_path, BY_NAME["gamma_0"], 0, curve(10, 0, 2))
  load(tmp_path, "credit")
  put(
    tmp_path,
    BY_NAME["credit_first_turn"],
    0,
    curve(10, 0, 2),
    **{"method.gamma": 0.9},
  )
  with pytest.raises(records.TableError, match="method.gamma=0.4"):
    load(tmp_path, "credit")


@pytest.mark.parametrize("limit", [None, 40.0])
def test_unequal_budgets_are_refused(tmp_path, limit):
  # Ten seconds an iteration for both: LEAP has had twice the time, and the
  # other one did not use up its 40 s.
  shared = {"run.max_training_s": limit}
  put(tmp_path, BY_NAME["leap"], 0, curve(10, 0, 2, 4, 4, 4), **shared)
  put(tmp_path, BY_NAME["kevin"], 0, curve(10, 0, 2, 4), **shared)
  with pytest.raises(records.TableError, match="unequal budgets") as error:
    load(tmp_path)
  line = str(error.value)
  assert "kevin/seed0 has iterations=2 (20 s" in line
  assert "leap/seed0 has iterations=4 (40 s" in line


def test_a_limit_that_nobody_met_is_no_budget(tmp_path):
  limit = {"run.max_training_s": 100.0}
  put(tmp_path, BY_NAME["leap"], 0, curve(10, 0, 2, 4), **limit)
  put(tmp_path, BY_NAME["kevin"], 0, curve(20, 0, 2, 4), **limit)
  assert "; 2 iterations." in comparison.markdown("main", *load(tmp_path))


def test_a_row_of_another_learning_rate_is_that_multiple_of_the_others(
  tmp_path,
):
  rate = lambda value: {"learner.learning_rate": value}
  half = BY_NAME["leap_half_rate"]
  put(tmp_path, BY_NAME["leap"], 0, curve(10, 0, 2), **rate(3e-5))
  put(tmp_path, half, 0, curve(10, 0, 2), **rate(1.5e-5))
  runs, _ = load(tmp_path, "learning_rate")
  assert len(runs["leap_half_rate"]) == 1
  put(tmp_path, half, 0, curve(10, 0, 2), **rate(1e-5))
  with pytest.raises(records.TableError, match="learner.learning_rate="):
    load(tmp_path, "learning_rate")
