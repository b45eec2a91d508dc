"""Sweeps: what there is to do, and doing it, with a stand-in for the run."""

import gzip
import json
import os
import shutil

import pytest

from experiments import (
  collected,
  provenance,
  rows,
  sweep,
  workdir,
)
from tests.experiments.fake_runs import ROOT, TWO, main


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


@pytest.mark.parametrize("dry", [(), ("--dry_run",)])
def test_two_cold_starts_of_one_seed_are_refused(tmp_path, fake, capsys, dry):
  one = ("--table=credit", "--rows=leap", "--seeds=1")
  assert main(tmp_path, *one) == 0
  fake()
  kept = tmp_path / "kept" / "leap" / "seed0"
  workdir.write_json(kept / workdir.FORKED_FROM, {"checkpoint_sha256": "a1"})
  folder = tmp_path / "runs" / "gamma_0" / "seed0"
  folder.mkdir(parents=True)
  workdir.write_json(folder / workdir.FORKED_FROM, {"checkpoint_sha256": "b2"})
  (tmp_path / "runs" / "order.txt").unlink()
  both = ("--table=credit", "--rows=leap,gamma_0", "--seeds=1")
  assert main(tmp_path, *both, *dry) == 2
  (line,) = capsys.readouterr().err.splitlines()[-1:]
  assert (
    f"{kept} goes on from cold start a1, {folder} from cold start b2" in line
  )
  assert fake() == []
  # One that would make a cold start of its own; or may still be forked.
  shutil.rmtree(folder)
  assert main(tmp_path, *both, *dry) == (0 if dry else 2)
  assert fake() == []


def test_code_that_no_commit_names_is_told(tmp_path, fake, capsys, monkeypatch):
  monkeypatch.setattr(provenance, "commit", lambda: "abc+changes")
  assert main(tmp_path, *TWO, "--dry_run") == 0
  told = "of commit abc+changes, which names no one state"
  assert told in capsys.readouterr().err
  monkeypatch.setattr(provenance, "commit", lambda: "abc")
  assert main(tmp_path, *TWO, "--dry_run") == 0
  assert told not in capsys.readouterr().err


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


def test_kept_results_of_another_commit_are_told(
  tmp_path, fake, capsys, monkeypatch
):
  monkeypatch.setattr(provenance, "commit", lambda: "now")
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
