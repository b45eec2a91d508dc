"""Tables from run folders."""

import json
import pathlib

import pytest

from experiments import tables

ROOT = pathlib.Path(__file__).parents[2]


def result(acc, seed):
  side = lambda a: {
    "acc_at_1": a,
    "acc_at_2": a + 0.1,
    "acc_at_3": a + 0.2,
    "turns_per_pass": 1.5,
    "recovery_rate": None,
    "num_problems": 48,
    "num_samples": 384,
  }
  return {
    "before": side(0.25),
    "after": side(acc),
    "run": {
      "seed": seed,
      "iterations": 5,
      "seconds": {"sample": 10, "harness": 20, "update": 30, "evaluate": 99},
      "seconds_total": 200,
      "turns": 1000,
      "activation": 0.5,
      "hardware": "2 x X",
      "commit": "abc",
    },
  }


@pytest.fixture
def folder(tmp_path):
  for seed, acc in enumerate((0.5, 0.6)):
    path = tmp_path / "leap" / f"seed{seed}"
    path.mkdir(parents=True)
    (path / "results.json").write_text(json.dumps(result(acc, seed)))
  return tmp_path


def test_means_deviations_and_missing_rows(folder):
  lines = tables.markdown(tables.load(folder)).splitlines()
  row = next(line for line in lines if "LEAP" in line)
  # .5 and .6: mean 55, sample deviation 7.07.
  assert "25.0 ± 0.0 → 55.0 ± 7.1" in row
  assert "| 60 ± 0 |" in row  # training: 10 + 20 + 30, evaluation left out
  assert "| - |" in row  # no recovery rate
  other = next(line for line in lines if "single-turn" in line)
  assert other.count("not run") == len(tables._COLUMNS)
  assert "2 seeds" in lines[-1] and "2 x X" in lines[-1]


def test_a_damaged_file_is_named(folder):
  (folder / "leap" / "seed1" / "results.json").write_text("{")
  with pytest.raises(tables.TableError, match="seed1"):
    tables.load(folder)
  assert tables.main([f"--runs={folder}"]) == 2


def test_writing_replaces_what_stands_between_the_markers(tmp_path):
  path = tmp_path / "README.md"
  path.write_text(f"a\n{tables.BEGIN}\nold\n{tables.END}\nb\n")
  assert tables.write(path, "new")
  assert path.read_text() == f"a\n{tables.BEGIN}\nnew\n{tables.END}\nb\n"
  assert not tables.write(path, "new")
  path.write_text("nothing")
  with pytest.raises(tables.TableError, match="no line"):
    tables.write(path, "new")


def test_the_readmes_table_is_the_generated_one():
  text = (ROOT / "README.md").read_text()
  table = text.split(tables.BEGIN)[1].split(tables.END)[0].strip()
  assert table == tables.markdown(tables.load(tables.RESULTS))
