"""Tables of sweeps: intervals, time to accuracy, what is refused."""

import csv
import io
import json
import math
import pathlib

import numpy as np
import pytest

from experiments import (
  columns,
  comparison,
  headline,
  heldout,
  intervals,
  paper,
  plots,
  records,
  rows,
  tables,
  time_to_accuracy,
)
from tests.experiments.sweep_results import curve, put

MAIN = rows.TABLES["main"]
BY_NAME = {row.name: row for row in rows.TABLES["all"]}


@pytest.fixture
def folder(tmp_path):
  """LEAP climbs twice as fast as multi-turn; single-turn never moves."""
  for seed in (0, 1):
    put(tmp_path, BY_NAME["leap"], seed, curve(10, 0, 2, 4, 4))
    put(tmp_path, BY_NAME["grpo_multi_turn"], seed, curve(20, 0, 2, 4, 4))
    put(tmp_path, BY_NAME["grpo_single_turn"], seed, curve(5, 0, 0, 0, 0))
  return tmp_path


def load(folder, table="main", **options):
  options = {"allow_mixed": False} | options
  runs = records.load(folder, rows.TABLES[table], **options)
  return runs, intervals.draw(runs, 200)


# ---------------------------------------------------------------- intervals


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


def test_a_difference_is_paired(folder):
  runs, draws = load(folder)
  found = comparison.estimates("main", runs, draws)
  # The same counts: whatever is drawn, the difference is nothing.
  assert found["grpo_multi_turn"]["acc_at_1_minus_leap"] == (0, 0, 0)
  worse = found["grpo_single_turn"]["acc_at_1_minus_leap"]
  assert worse.value == -75 and worse.high < 0
  assert math.isnan(found["leap"]["acc_at_1_minus_leap"].value)


def test_a_difference_is_of_the_seeds_that_both_have(folder):
  put(folder, BY_NAME["leap"], 2, curve(10, 0, 0, 0, 0))
  runs, draws = load(folder)
  found = comparison.estimates("main", runs, draws)
  assert found["leap"]["acc_at_1"].value == 50
  assert found["grpo_multi_turn"]["acc_at_1_minus_leap"].value == 0


def test_numbers_without_a_value_are_left_out():
  assert intervals.estimate(np.asarray([1.0, np.nan, 3.0])) == (1, 3, 3)
  nothing = intervals.estimate(np.asarray([np.nan, 1.0]))
  assert all(math.isnan(x) for x in nothing)


# --------------------------------------------------------- time to accuracy


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


def test_smoothing_looks_back_alone():
  got = time_to_accuracy.smooth(np.asarray([[0.0, 3.0, 6.0, 0.0]]))
  np.testing.assert_allclose(got, [[0.0, 1.5, 3.0, 3.0]])


def test_twice_as_fast_is_two(folder):
  runs, draws = load(folder)
  of = lambda base, row, **more: time_to_accuracy.ratio(
    runs[base], runs[row], 1, draws, **more
  )
  assert of("grpo_multi_turn", "leap") == pytest.approx((2, 2, 2))
  assert of("leap", "grpo_multi_turn").value == pytest.approx(0.5)
  # The same curve over tokens and calls.
  assert of("grpo_multi_turn", "leap", cost="tokens").value == 1
  assert of("grpo_multi_turn", "leap", cost="harness_calls").value == 1
  # Never gets there; and there is nothing to reach.
  assert of("leap", "grpo_single_turn") == (0, 0, 0)
  assert math.isnan(of("grpo_single_turn", "leap").value)


# ------------------------------------------------------------------ tables


def test_a_table_has_the_papers_numbers_and_what_was_not_run(folder):
  text = comparison.markdown("main", *load(folder))
  lines = text.splitlines()
  header = lines[0]
  assert header.startswith("| main | Acc@1, % | paper | Acc@2, %")
  width = header.count("|")
  body = [line for line in lines if line.startswith("|")]
  assert all(line.count("|") == width for line in body)
  assert len(body) == 3 + len(MAIN)
  leap = next(line for line in body if "LEAP**" in line)
  assert "| **LEAP** | 75.0 [50.0, 100.0] | 70 |" in leap
  murphy = next(line for line in body if "Murphy" in line)
  assert murphy.startswith("| Murphy MaRS, same budget | not run | 67.6 |")
  start = next(line for line in body if "before training" in line)
  assert start.startswith("| before training | 0.0 [0.0, 0.0] | - |")
  assert "seeds 0, 1; 3 iterations" in text and paper.NOTE in text
  assert "Hardware: 2 x X. Commit: abc." in text


def test_csv_holds_every_cell(folder):
  runs, draws = load(folder)
  text = comparison.comma_separated("main", runs, draws)
  lines = list(csv.DictReader(io.StringIO(text)))
  assert len(lines) == len(MAIN) * len(columns.COLUMNS["main"])
  cells = {(line["row"], line["column"]): line for line in lines}
  cell = cells["leap", "acc_at_1"]
  assert float(cell["mean"]) == 75 and cell["paper"] == "70"
  assert cell["seeds"] == "0 1" and cell["commit"] == "abc"
  assert cells["kevin", "acc_at_1"]["mean"] == "not run"


@pytest.mark.parametrize("table", columns.COLUMNS)
def test_every_table_is_made_with_and_without_runs(tmp_path, table):
  runs = records.load(tmp_path, rows.TABLES[table], allow_mixed=False)
  empty = comparison.markdown(table, runs, None)
  cells = len(rows.TABLES[table]) * len(columns.COLUMNS[table])
  assert empty.count("not run") == cells
  for row in rows.TABLES[table]:
    put(tmp_path, row, 0, curve(10, 0, 2, 4))
  full = comparison.markdown(table, *load(tmp_path, table))
  assert "not run" not in full
  assert "with one seed it is of the problems alone" in full


def test_the_control_is_no_point_of_the_curve(tmp_path):
  true = {"p": [1, 2, 1, 0, 8], "q": [0, 0, 2, 2, 12]}
  control = {"p": [1, 1, 0, 2, 9], "q": [0, 0, 0, 4, 12]}
  evaluations = [(0, true), (10, true)]
  put(tmp_path, BY_NAME["leap"], 0, evaluations, control)
  put(tmp_path, BY_NAME["kevin"], 0, evaluations)
  runs, draws = load(tmp_path, "feedback")
  assert len(runs["leap"][0].evaluations) == 2
  found = comparison.estimates("feedback", runs, draws)
  of = lambda row, key: found[row][key].value
  # Of seven first failures five were solved later, and one in the control.
  assert of("leap", "recovery_rate") == pytest.approx(500 / 7)
  assert of("leap", "recovery_random") == pytest.approx(100 / 7)
  assert of("leap", "recovery_due") == pytest.approx(400 / 7)
  assert of("leap", "acc_at_3_random") == 25
  assert math.isnan(of("kevin", "recovery_due"))
  label = heldout.RANDOM_FEEDBACK
  assert records._CONTROL == label


def test_every_reported_number_has_its_cell():
  for table, reported in paper.REPORTED.items():
    names = {row.name for row in rows.TABLES[table]}
    keys = {column.key for column in columns.COLUMNS[table]}
    assert set(reported) <= names
    assert all(set(numbers) <= keys for numbers in reported.values())


@pytest.mark.parametrize("key", ["commit", "hardware"])
def test_origins_are_not_mixed_silently(folder, capsys, key):
  put(folder, BY_NAME["kevin"], 0, curve(10, 0, 2, 4, 4), **{key: "other"})
  arguments = ["--table=main", f"--runs={folder}"]
  assert tables.main(arguments) == 2
  line = capsys.readouterr().err
  assert f"{key} " in line and "--allow_mixed" in line
  assert tables.main([*arguments, "--allow_mixed"]) == 0
  assert f"MIXED: runs of 2 kinds of {key}" in capsys.readouterr().out


def test_runs_that_are_not_alike_are_refused(folder):
  kevin = BY_NAME["kevin"]
  put(folder, kevin, 0, curve(10, 0, 2, 4, 4), **{"learner.clip_low": 0.3})
  with pytest.raises(records.TableError, match="learner.clip_low=0.2"):
    load(folder)
  put(folder, kevin, 0, curve(10, 0, 2, 4))
  with pytest.raises(records.TableError, match="iterations=3"):
    load(folder)
  assert load(folder, may_differ=records.LENGTH)
  put(folder, kevin, 0, curve(10, 0, 2, 4, 4), **{"method.gate": "easy"})
  with pytest.raises(records.TableError, match="gate=easy, its folder of own"):
    load(folder)
  path = put(folder, kevin, 0, curve(10, 0, 2, 4, 4))
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


@pytest.mark.parametrize(
  "arguments,words",
  [
    (["--table=man"], "--table=man needs --runs="),
    (["--table=man", "--runs=."], "no table man; there are quickstart, all"),
    (["--table=main", "--runs=/nowhere"], "no folder /nowhere"),
  ],
)
def test_a_mistake_is_one_line(capsys, arguments, words):
  assert tables.main(arguments) == 2
  (line,) = capsys.readouterr().err.splitlines()
  assert words in line


def test_all_tables_into_one_csv_and_a_file_with_markers(folder, tmp_path):
  page = tmp_path / "page.md"
  begin, end = tables.markers("main")
  page.write_text(f"a\n{begin}\n{end}\nb\n")
  file = tmp_path / "all.csv"
  arguments = [f"--runs={folder}", f"--csv={file}"]
  assert tables.main([*arguments, "--table=main", f"--write={page}"]) == 0
  assert "75.0 [50.0, 100.0]" in page.read_text()
  assert tables.main([*arguments, "--table=all"]) == 0
  lines = list(csv.DictReader(io.StringIO(file.read_text())))
  assert {line["table"] for line in lines} == set(columns.COLUMNS)
  assert all(line["table"] != "table" for line in lines)


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


# ---------------------------------------------------------------- headline


def test_the_headline(folder, tmp_path):
  file = tmp_path / "headline.json"
  assert headline.main([f"--runs={folder}", f"--write={file}"]) == 0
  found = json.loads(file.read_text())
  assert found["time_to_acc1_ratio_vs_multi_turn"] == 2
  assert found["time_to_acc1_ratio_vs_multi_turn_interval"] == [2, 2]
  assert found["time_to_acc3_ratio_vs_multi_turn"] == 2
  # Single-turn never rises: there is nothing to reach.
  assert found["time_to_acc1_ratio_vs_single_turn"] is None
  assert found["time_to_acc3_ratio_vs_single_turn_interval"] == [None, None]
  assert found["acc_at_3_minus_multi_turn"] == 0
  assert found["acc_at_1_minus_single_turn"] == 0.75
  leap = found["methods"]["leap"]
  assert leap["acc_at_1"] == leap["acc_at_3"] == 0.75
  assert leap["training_seconds"] == 30 and leap["iterations"] == [3, 3]
  assert found["seeds"] == [0, 1] and found["commit"] == "abc"
  assert found["hardware"] == "2 x X" and found["paper_ratio"] == 1.93


def test_the_headline_as_a_table(folder, tmp_path):
  page = tmp_path / "page.md"
  begin, end = tables.markers("headline")
  page.write_text(f"{begin}\n{end}\n")
  assert headline.main([f"--runs={folder}", f"--readme={page}"]) == 0
  lines = page.read_text().splitlines()
  assert lines[3] == (
    "| time to the baseline's best Acc@1 | 2.00 [2.00, 2.00]× | - | "
    '1.93× to "the same performance" |'
  )
  assert "| Acc@3 at the end, points more | 0.0 [0.0, 0.0] | 75.0" in lines[6]
  (leap,) = (line for line in lines if line.startswith("| **LEAP**"))
  assert leap.endswith("| 70.0 / 79.2 / 80.8 |")


ROOT = pathlib.Path(__file__).parents[2]


def test_the_readmes_headline_is_the_generated_one():
  text = (ROOT / "README.md").read_text()
  begin, end = tables.markers("headline")
  path = tables.RESULTS.parent / "headline.json"
  # Either both are there or neither is.
  assert (begin in text) == path.exists()
  if path.exists():
    record = json.loads(path.read_text())
    loaded = headline.load(path.parent / record["runs"], allow_mixed=False)
    assert headline.headline(*loaded) | {"runs": record["runs"]} == record
    shown = text.split(begin)[1].split(end)[0].strip()
    assert shown == headline.markdown(record)


def test_a_headline_needs_all_three_rows_and_the_same_seeds(folder, capsys):
  put(folder, BY_NAME["leap"], 2, curve(10, 0, 2, 4, 4))
  assert headline.main([f"--runs={folder}"]) == 2
  assert "different seeds: leap 0, 1, 2" in capsys.readouterr().err
  (folder / "grpo_multi_turn").rename(folder / "elsewhere")
  assert headline.main([f"--runs={folder}"]) == 2
  line = capsys.readouterr().err
  assert "no run of grpo_multi_turn" in line and "--rows=grpo_multi" in line


def test_a_headline_may_be_of_unequal_lengths(folder):
  # The same budget of time: the faster one has done more iterations.
  for seed in (0, 1):
    put(folder, BY_NAME["leap"], seed, curve(10, 0, 2, 4, 4, 4, 4))
  found = headline.headline(*headline.load(folder, allow_mixed=False))
  assert found["time_to_acc1_ratio_vs_multi_turn"] == 2
  assert found["methods"]["leap"]["iterations"] == [5, 5]
