"""Tables from run folders."""

import json
import pathlib

import pytest

from experiments import settings, tables

ROOT = pathlib.Path(__file__).parents[2]


def result(acc, seed, method="leap"):
  side = lambda a: {
    "acc_at_1": a,
    "acc_at_2": a + 0.1,
    "acc_at_3": a + 0.2,
    "turns_per_pass": 1.5,
    "recovery_rate": None,
    "num_problems": 48,
    "num_samples": 384 - seed,
    "num_faults": seed,
  }
  cost = {"tokens": 45678, "harness_calls": 1000, "seconds": 60.0}
  return {
    "before": side(0.25),
    "after": side(acc),
    "run": {
      "seed": seed,
      "iterations": 5,
      "seconds_total": 200,
      "training": cost,
      "evaluation": {"tokens": 7, "harness_calls": 8, "seconds": 99.0},
      "activation": 0.5,
      "hardware": "2 x X",
      "commit": "abc",
    },
    "config": {
      "seed": seed,
      "method.name": method,
      "run.num_iterations": 5,
      "learner.learning_rate": 1e-4,
    },
  }


def put(folder, name, seed, value):
  path = folder / name / f"seed{seed}"
  path.mkdir(parents=True, exist_ok=True)
  (path / "results.json").write_text(json.dumps(value))


@pytest.fixture
def folder(tmp_path):
  for seed, acc in enumerate((0.5, 0.6)):
    put(tmp_path, "leap", seed, result(acc, seed))
  return tmp_path


def test_means_deviations_and_missing_rows(folder):
  lines = tables.markdown(tables.load(folder)).splitlines()
  row = next(line for line in lines if "LEAP" in line)
  assert row.startswith("| [**LEAP**](experiments/configs/quickstart.py) | ")
  # .5 and .6: mean 55, sample deviation 7.07.
  assert "25.0 ± 0.0 → 55.0 ± 7.1" in row
  # Of training alone: tokens in thousands, harness calls, seconds.
  assert "| 46 ± 0 | 1000 ± 0 | 60 ± 0 | 200 ± 0 |" in row
  assert "| - |" in row  # no recovery rate
  other = next(line for line in lines if "single-turn" in line)
  assert other.count("not run") == len(tables._COLUMNS)
  assert "seeds 0, 1;" in lines[-1] and "2 x X" in lines[-1]
  # Samples that were lost are samples.
  assert "48 held-out problems, 384 samples a run" in lines[-1]


def test_every_row_links_to_the_config_of_its_method():
  for method, (_, name) in tables.METHODS.items():
    path = ROOT / "experiments" / "configs" / f"{name}.py"
    assert settings.load_file(str(path)).method.name == method


def test_the_order_is_that_of_the_seeds(tmp_path):
  for seed in (10, 9, 2):
    put(tmp_path, "leap", seed, result(0.5, seed))
  seeds = [r["run"]["seed"] for r in tables.load(tmp_path)["leap"]]
  assert seeds == [2, 9, 10]


@pytest.mark.parametrize("name", ["leap", "grpo_multi_turn"])
@pytest.mark.parametrize(
  "section,key,value,words",
  [
    ("config", "learner.learning_rate", 1e-3, "config.learner.learning_rate="),
    ("config", "run.num_iterations", 9, "config.run.num_iterations=5"),
    ("config", "new.setting", 1, "config.new.setting=None"),
    ("run", "iterations", 4, "5 iterations"),
    ("after", "num_problems", 24, "48 held-out problems"),
    ("after", "num_samples", 100, "384 samples"),
  ],
)
def test_runs_that_are_not_alike_make_no_table(
  folder, name, section, key, value, words
):
  other = result(0.5, 2, name)
  other[section][key] = value
  put(folder, name, 2, other)
  with pytest.raises(tables.TableError, match=words) as error:
    tables.load(folder)
  assert f"{name}/seed2" in str(error.value)


@pytest.mark.parametrize(
  "name,seed,words",
  [
    ("grpo_multi_turn", 5, "of method leap, its folder of grpo_multi_turn"),
    ("leap", 6, "of seed seed5, its folder of seed6"),
  ],
)
def test_a_run_in_another_ones_folder_is_refused(folder, name, seed, words):
  put(folder, name, seed, result(0.5, 5))
  with pytest.raises(tables.TableError, match=words):
    tables.load(folder)


@pytest.mark.parametrize("key", ["commit", "hardware"])
def test_commits_and_hardware_are_not_mixed_silently(folder, capsys, key):
  other = result(0.5, 2)
  other["run"][key] = "another"
  put(folder, "leap", 2, other)
  assert tables.main([f"--runs={folder}"]) == 2
  line = capsys.readouterr().err
  assert f"{key} " in line and "results.json of another" in line
  assert tables.main([f"--runs={folder}", "--allow_mixed"]) == 0
  assert "another" in capsys.readouterr().out


@pytest.mark.parametrize("section", ["before", "after", "run", "config"])
def test_a_file_of_another_version_is_named(folder, section):
  old = result(0.5, 1)
  del old[section]
  put(folder, "leap", 1, old)
  with pytest.raises(tables.TableError, match="seed1.*do that run again"):
    tables.load(folder)


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
