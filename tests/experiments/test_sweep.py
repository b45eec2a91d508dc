"""Sweeps: what there is to do, and doing it, with a stand-in for the run."""

import contextlib
import gzip
import json
import os
import pathlib
import subprocess

import pytest

from experiments import (
  collected,
  endings,
  provenance,
  rows,
  settings,
  sweep,
  sweep_run,
  workdir,
)
from leap_jax import methods

ROOT = pathlib.Path(__file__).parents[2]
QUICKSTART = str(ROOT / "experiments" / "configs" / "quickstart.py")


def main(tmp_path, *arguments):
  return sweep.main(
    [
      "sweep",
      f"--config={QUICKSTART}",
      f"--runs={tmp_path / 'runs'}",
      f"--results={tmp_path / 'kept'}",
      *arguments,
    ]
  )


@pytest.mark.parametrize(
  "arguments,words",
  [
    (["--table=man"], ["no table man", "main, cost, time", "mean main?"]),
    ([], ["no table: add --table=, one of main, cost"]),
    (
      ["--table=dcp", "--rows=leap,gate_esay"],
      ["no row gate_esay in table dcp", "gate_open, gate_easy", "gate_easy?"],
    ),
    (["--table=main", "--seeds=0"], ["seeds=0"]),
    (["--table=main", "--config.method.gate=easy"], ["method.gate is what"]),
    (
      ["--table=main", "--config.rollout.group_size", "4"],
      ["write --config.rollout.group_size=VALUE"],
    ),
    (["--table=main", "--config.seed=4"], ["config.seed is what"]),
    (["--table=main", "--config.learner.clip_lo=1"], ["clip_low"]),
    (["--table=main", "--config.learner.clip_low=2"], ["from 0.0 to 1.0"]),
    (["--tabel=main"], ["no flag --tabel", "mean table?"]),
  ],
)
def test_a_mistake_is_one_line_before_anything_runs(
  tmp_path, capsys, arguments, words
):
  assert main(tmp_path, *arguments) == 2
  (line,) = capsys.readouterr().err.splitlines()
  for word in words:
    assert word in line
  assert not list(tmp_path.iterdir())


def test_help_names_every_table_and_row(capsys):
  assert sweep.main(["sweep", "--help"]) == 0
  text = capsys.readouterr().out
  for table, members in rows.TABLES.items():
    assert table == "all" or f"  {table}:" in text
    assert all(row.name in text for row in members)


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
  names = lambda *of: {
    row.name for row in sweep.sweep_plan.chosen("reward", *of)
  }
  timed = "reward_rank_speed"
  assert names(None, "auto") - names(None, "cpu") == {timed}
  assert names(timed, "cpu") == {timed}  # by name: the run refuses it


def test_the_main_table_has_every_method():
  names = {row.settings["method.name"] for row in rows.TABLES["main"]}
  assert names == set(methods.METHODS)


def stand_in(arguments):
  """Leaves what a run leaves, and no more; returns its exit status."""
  from absl import flags

  define = lambda values: flags.DEFINE_string(
    "workdir", None, "", flag_values=values
  )
  config, values = settings.parse(["run", *arguments], define)
  folder = pathlib.Path(values.workdir)
  folder.mkdir(parents=True, exist_ok=True)
  root = folder.parents[1]
  with open(root / "order.txt", "a") as file:
    file.write(f"{folder.parent.name}/{folder.name}\n")
  (folder / "metrics.jsonl").write_text('{"step": 0}\n')
  code = root / f"fail_{folder.parent.name}"
  if code.exists():
    return int(code.read_text())
  flat = settings.flat(config)
  for name in ("heldout.jsonl", "problems.jsonl"):
    (folder / name).write_text("{}\n")
  workdir.write_json(
    folder / "results.json",
    {
      "config": flat,
      "run": {
        "iterations": min(flat["run.num_iterations"], 50),
        "training_seconds": 90.0,
        "seconds_total": 120.0,
        "commit": provenance.commit(),
        "hardware": "X",
      },
    },
  )
  return 0


@pytest.fixture
def fake(tmp_path, monkeypatch):
  """Sweeps start the stand-in; fake() -> the runs that were started."""
  popen = subprocess.Popen
  (tmp_path / "runs").mkdir()

  def start(command, **options):
    if command[0] == "git":
      return popen(command, **options)
    assert command[1:3] == ["-m", "experiments.run"]
    code = stand_in(command[3:])
    return popen(
      [command[0], "-S", "-c", f"raise SystemExit({code})"], **options
    )

  monkeypatch.setattr(sweep_run.subprocess, "Popen", start)

  def started():
    path = tmp_path / "runs" / "order.txt"
    return path.read_text().split() if path.exists() else []

  return started


TWO = ("--table=credit", "--rows=leap,gamma_0", "--seeds=2")


def test_runs_are_done_once_and_kept(tmp_path, fake, capsys):
  assert main(tmp_path, *TWO) == 0
  expected = ["leap/seed0", "gamma_0/seed0", "leap/seed1", "gamma_0/seed1"]
  assert fake() == expected
  text = capsys.readouterr().err
  assert "[1/4] leap seed 0; time left: known when" in text
  assert "[4/4] gamma_0 seed 1; about 2 min left" in text
  kept = tmp_path / "kept" / "gamma_0" / "seed1"
  result = json.loads((kept / "results.json").read_text())
  assert result["config"]["method.gamma"] == 0.0
  assert result["config"]["seed"] == 1
  assert collected.read_lines(kept / "metrics.jsonl.gz") == [{"step": 0}]
  # Again: nothing to do. Without the runs, too: what is kept is enough.
  assert main(tmp_path, *TWO) == 0
  (tmp_path / "runs").rename(tmp_path / "elsewhere")
  assert main(tmp_path, *TWO) == 0
  assert fake() == []
  # One row more: that one alone.
  more = ("--table=credit", "--rows=leap,gamma_1", "--seeds=2")
  assert main(tmp_path, *more) == 0
  assert fake() == ["gamma_1/seed0", "gamma_1/seed1"]


def test_a_cold_start_of_another_run_takes_no_time(tmp_path, fake, capsys):
  for name in ("leap", "gamma_0"):
    for seed in (0, 1):
      folder = tmp_path / "runs" / name / f"seed{seed}"
      folder.mkdir(parents=True)
      workdir.write_json(folder / workdir.FORKED_FROM, {"seconds": 60.0})
  assert main(tmp_path, *TWO) == 0
  assert "[4/4] gamma_0 seed 1; about 60 s left" in capsys.readouterr().err


def test_seeds_may_be_shared_among_machines(tmp_path, fake, capsys):
  assert main(tmp_path, *TWO, "--first_seed=1") == 0
  assert fake() == ["leap/seed1", "gamma_0/seed1"]
  assert main(tmp_path, *TWO) == 0  # the rest
  assert fake()[2:] == ["leap/seed0", "gamma_0/seed0"]
  capsys.readouterr()
  assert main(tmp_path, *TWO, "--first_seed=2") == 2
  error = capsys.readouterr().err
  assert "--first_seed=2; at most 1, the last of --seeds=2" in error


def test_a_dry_run_says_what_there_is_to_do(tmp_path, fake, capsys):
  assert main(tmp_path, "--table=credit", "--rows=leap", "--seeds=1") == 0
  folder = tmp_path / "runs" / "gamma_0" / "seed0"
  folder.mkdir(parents=True)
  warm, line = '{"warm/loss": 1.0}\n', '{"rollout/acc_at_1": 0.5}\n'
  (folder / "metrics.jsonl").write_text(warm * 3 + line * 7)
  capsys.readouterr()
  assert main(tmp_path, *TWO, "--dry_run") == 0
  text = capsys.readouterr().out
  assert text.splitlines()[0].split() == ["leap", "seed", "0", "finished"]
  assert "to go on: 7 of 20 iterations" in text
  assert "3 of 4 runs to do; about 6 min left" in text
  assert fake() == ["leap/seed0"]


def test_kept_results_of_another_commit_are_told(tmp_path, fake, capsys):
  one = ("--table=credit", "--rows=leap", "--seeds=1")
  assert main(tmp_path, *one) == 0
  assert "commit" not in capsys.readouterr().err
  path = tmp_path / "kept" / "leap" / "seed0" / "results.json"
  result = json.loads(path.read_text())
  result["run"]["commit"] = "abc"
  path.write_text(json.dumps(result))
  # All that is wanted is of one commit, if of another one than ours.
  assert main(tmp_path, *one) == 0
  assert "commit" not in capsys.readouterr().err
  told = (
    f"of commit abc: leap seed 0; what is run now is of {provenance.commit()}"
  )
  assert main(tmp_path, *TWO, "--dry_run") == 0
  assert told in capsys.readouterr().err
  assert main(tmp_path, *TWO) == 0
  assert told in capsys.readouterr().err
  # Nothing is left to do, and what is kept makes no table.
  assert main(tmp_path, *TWO) == 0
  text = capsys.readouterr().err
  assert "kept results are of commit" in text and "abc: leap seed 0" in text


def test_a_row_may_be_a_method_at_another_learning_rate(tmp_path, fake):
  rates = (
    "grpo_multi_turn,grpo_multi_turn_half_rate,grpo_multi_turn_double_rate"
  )
  table = ("--table=learning_rate", f"--rows={rates}", "--seeds=1")
  assert main(tmp_path, *table, "--config.learner.learning_rate=3e-5") == 0
  got = {}
  for name in rates.split(","):
    path = tmp_path / "kept" / name / "seed0" / "results.json"
    config = json.loads(path.read_text())["config"]
    assert config["method.name"] == "grpo_multi_turn"
    got[name] = config["learner.learning_rate"]
  assert list(got.values()) == [3e-5, 1.5e-5, 6e-5]
  assert main(tmp_path, *table, "--config.learner.learning_rate=3e-5") == 0
  assert len(fake()) == 3  # what is kept is what is wanted


def test_more_iterations_go_on_and_another_setting_is_refused(
  tmp_path, fake, capsys
):
  one = ("--table=credit", "--rows=leap", "--seeds=1")
  assert main(tmp_path, *one) == 0
  assert main(tmp_path, *one, "--config.run.num_iterations=30") == 0
  assert fake() == ["leap/seed0"] * 2
  # Fewer: that run has done them.
  assert main(tmp_path, *one) == 0
  assert fake() == ["leap/seed0"] * 2
  other = "--config.learner.learning_rate=0.5"
  capsys.readouterr()
  assert main(tmp_path, *one, other) == 2
  line = capsys.readouterr().err
  assert "learning_rate=0.0001, the sweep wants 0.5" in line
  # The kept result may go; the run's folder is its owner's.
  assert main(tmp_path, *one, other, "--replace") == 2
  (tmp_path / "runs").rename(tmp_path / "elsewhere")
  assert main(tmp_path, *one, other, "--replace") == 0
  kept = tmp_path / "kept" / "leap" / "seed0" / "results.json"
  assert json.loads(kept.read_text())["config"]["learner.learning_rate"] == 0.5


def test_a_run_that_has_had_its_time_is_done(tmp_path, fake):
  one = ("--table=credit", "--rows=leap", "--seeds=1")
  long = (*one, "--config.run.num_iterations=1000")
  assert main(tmp_path, *long, "--config.run.max_training_s=90") == 0
  assert main(tmp_path, *long, "--config.run.max_training_s=80") == 0
  assert fake() == ["leap/seed0"]
  # More time: it goes on; the stand-in does nothing with it.
  assert main(tmp_path, *long, "--config.run.max_training_s=100") == 1
  assert fake() == ["leap/seed0"] * 2


def test_a_run_that_fails_does_not_keep_the_others(tmp_path, fake, capsys):
  (tmp_path / "runs" / "fail_leap").write_text("3")
  assert main(tmp_path, *TWO) == 1
  assert len(fake()) == 4
  text = capsys.readouterr().err
  assert "failed with status 3" in text
  assert "failed: leap seed 0, leap seed 1; the same command" in text
  (tmp_path / "runs" / "fail_leap").unlink()
  assert main(tmp_path, *TWO) == 0
  assert len(fake()) == 6


def test_a_fault_of_the_machine_is_tried_once_more(tmp_path, fake, capsys):
  fault = tmp_path / "runs" / "fail_leap"
  fault.write_text(str(endings.EXIT_MACHINE))
  assert main(tmp_path, *TWO) == 1
  # Each once more, and the others are run as ever.
  assert fake() == [
    *["leap/seed0"] * 2,
    "gamma_0/seed0",
    *["leap/seed1"] * 2,
    "gamma_0/seed1",
  ]
  text = capsys.readouterr().err
  assert text.count("fault of the machine") == 2
  assert "failed with status 4; going on" in text


def test_a_run_waits_for_its_folder(tmp_path, fake, monkeypatch):
  """The last process of a run still writes; it ends while the sweep waits."""
  one = ("--table=credit", "--rows=leap", "--seeds=1")
  fault = tmp_path / "runs" / "fail_leap"
  fault.write_text(str(endings.EXIT_MACHINE))
  with contextlib.ExitStack() as process:
    folder = tmp_path / "runs" / "leap" / "seed0"
    process.enter_context(workdir.held(folder))
    waits = []

    def wait(seconds):
      waits.append(seconds)
      if len(waits) == 3:
        process.close()
        fault.unlink()

    monkeypatch.setattr(sweep_run.time, "sleep", wait)
    assert main(tmp_path, *one) == 0
  assert len(waits) == 3 and fake() == ["leap/seed0"] * 2


def test_a_run_whose_request_is_wrong_ends_the_sweep(tmp_path, fake, capsys):
  (tmp_path / "runs" / "fail_leap").write_text("2")
  assert main(tmp_path, *TWO) == 2
  assert fake() == ["leap/seed0"]
  assert "could not start" in capsys.readouterr().err


def test_two_sweeps_on_one_folder_refuse_each_other(tmp_path, fake, capsys):
  runs, kept = tmp_path / "runs", tmp_path / "kept"
  with workdir.held(runs, "--runs"):
    assert main(tmp_path, *TWO) == 2
  line = capsys.readouterr().err
  assert f"process {os.getpid()} is working in" in line
  assert "another --runs" in line
  with sweep._results_held(kept):
    assert main(tmp_path, *TWO) == 2
  assert "another sweep is writing" in capsys.readouterr().err
  assert fake() == []
  assert list(kept.iterdir()) == []  # the lock is no file


def test_results_are_the_same_bytes_each_time(tmp_path, fake):
  one = ("--table=credit", "--rows=leap", "--seeds=1")
  assert main(tmp_path, *one) == 0
  kept = tmp_path / "kept" / "leap" / "seed0"
  before = {p.name: p.read_bytes() for p in kept.iterdir()}
  (kept / "results.json").unlink()
  assert main(tmp_path, *one) == 0
  assert {p.name: p.read_bytes() for p in kept.iterdir()} == before
  assert fake() == ["leap/seed0"]  # collected from its folder, not run again
  assert gzip.decompress(before["metrics.jsonl.gz"]) == b'{"step": 0}\n'


def test_stopped_while_collecting_no_older_result_stands_beside_new_lines(
  tmp_path, fake, monkeypatch
):
  one = ("--table=credit", "--rows=leap", "--seeds=1")
  assert main(tmp_path, *one) == 0
  kept = tmp_path / "kept" / "leap" / "seed0"
  before = (kept / "results.json").read_bytes()
  source = tmp_path / "runs" / "leap" / "seed0"
  (source / "metrics.jsonl").write_text('{"step": 1}\n')
  replace, moved = os.replace, []

  def stop_after_one(*paths):
    if moved:
      raise KeyboardInterrupt
    moved.append(paths)
    replace(*paths)

  monkeypatch.setattr(os, "replace", stop_after_one)
  with pytest.raises(KeyboardInterrupt):
    collected.collect(source, kept)
  assert not (kept / "results.json").exists()
  monkeypatch.setattr(os, "replace", replace)
  assert main(tmp_path, *one) == 0
  assert (kept / "results.json").read_bytes() == before
  assert fake() == ["leap/seed0"]


# A sweep whose runs only wait; prints each one's process.


@pytest.mark.parametrize("table", ["main", "dcp", "reward"])
def test_the_kept_runs_are_those_that_the_sweep_wants(table, capsys):
  """Settings that have come since then are known of them."""
  arguments = [
    "sweep",
    f"--table={table}",
    f"--config={ROOT / 'experiments' / 'configs' / 'tables_tiny.py'}",
    f"--results={ROOT / 'experiments' / 'results' / 'tables_tiny'}",
    "--seeds=3",
    "--dry_run",
  ]
  assert sweep.main(arguments) == 0
  assert "0 of " in capsys.readouterr().out.splitlines()[-1]
