"""Sweeps whose runs fail, or whose folders others use."""

import contextlib
import os

from experiments import (
  endings,
  sweep,
  sweep_run,
  workdir,
)
from tests.experiments.fake_runs import TWO, main


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
