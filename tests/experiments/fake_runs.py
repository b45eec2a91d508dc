"""Sweeps with a stand-in for the run."""

import pathlib
import subprocess

import pytest

from experiments import provenance, settings, sweep, sweep_run, workdir

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
