"""Tables of sweeps."""

import csv
import io
import math

import pytest

from experiments import (
  columns,
  comparison,
  heldout,
  paper,
  records,
  rows,
  tables,
)
from tests.experiments.sweep_results import BY_NAME, climbing, curve, load, put

MAIN = rows.TABLES["main"]


@pytest.fixture
def folder(tmp_path):
  return climbing(tmp_path)


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
  assert "seeds 0, 1; 2 iterations" in text and paper.NOTE in text
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


def test_the_stages_add_up_to_an_iteration(folder):
  found = comparison.estimates("cost", *load(folder))["leap"]
  # 20 s of training in two iterations; sample 4, harness 2, update 6 s of both
  # of them. What was compiled is in none of these.
  assert found["step_seconds"].value == pytest.approx(10)
  assert found["sample_seconds"].value == pytest.approx(4 / 2)
  assert found["other_seconds"].value == pytest.approx(10 - 12 / 2)


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
  assert "one seed: intervals are of the problems alone" in full


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


def test_a_predictive_draw_is_compared_with_its_own_method(tmp_path):
  ends = {
    "grpo_single_turn": 0,
    "grpo_single_turn_predictive": 2,
    "leap": 2,
    "leap_predictive": 4,
    "grpo_multi_turn_predictive": 4,
  }
  for name, solved in ends.items():
    put(tmp_path, BY_NAME[name], 0, curve(10, 0, solved))
  found = comparison.estimates("sampling", *load(tmp_path, "sampling"))
  # `solved` of p and half as many of q, of four samples each.
  of = lambda row: found[row]["acc_at_1_minus_uniform"].value
  assert of("grpo_single_turn_predictive") == pytest.approx(37.5)
  assert of("leap_predictive") == pytest.approx(37.5)
  for name in ("leap", "grpo_single_turn", "grpo_multi_turn_predictive"):
    assert math.isnan(of(name))
  members = {row.name: row for row in rows.TABLES["sampling"]}
  for row in members.values():
    own = members[row.settings["method.name"]]
    assert own.settings == dict(row.settings) | {"method.sampling": "uniform"}


def test_every_reported_number_has_its_cell():
  for table, reported in paper.REPORTED.items():
    names = {row.name for row in rows.TABLES[table]}
    keys = {column.key for column in columns.COLUMNS[table]}
    assert set(reported) <= names
    assert all(set(numbers) <= keys for numbers in reported.values())


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
