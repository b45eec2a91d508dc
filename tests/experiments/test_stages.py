"""Every stage of a run, warm start included: killed in each, resumed, made
longer; in the end it is the run that nothing happened to."""

import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest

from experiments import fork
from leap_jax import metrics

ROOT = pathlib.Path(__file__).parents[2]
CONFIG = pathlib.Path(__file__).parent / "warm_run.py"


@pytest.fixture(scope="module")
def start(tmp_path_factory):
  """start(workdir, *arguments) -> process, file of its standard error.

  The processes share what XLA has compiled, or they would do little else.
  """
  root = tmp_path_factory.mktemp("processes")
  count = 0

  def make(workdir, *arguments):
    nonlocal count
    count += 1
    path = root / f"stderr{count}"
    with open(path, "wb") as errors:
      process = subprocess.Popen(
        [
          sys.executable,
          "-m",
          "experiments.run",
          f"--config={CONFIG}",
          f"--workdir={workdir}",
          *arguments,
        ],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        env={
          **os.environ,
          "JAX_PLATFORMS": "cpu",
          "JAX_COMPILATION_CACHE_DIR": str(root / "compiled"),
          "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
          "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        },
      )
    return process, path

  return make


def run(start, workdir, *arguments):
  process, path = start(workdir, *arguments)
  code = process.wait(timeout=300)
  return code, path.read_text()


def num_lines(workdir):
  path = workdir / "metrics.jsonl"
  return path.read_text().count("\n") if path.exists() else 0


def kill_when(start, workdir, reached, *arguments):
  """Starts the program and kills it as soon as `reached(errors)`."""
  process, path = start(workdir, *arguments)
  deadline = time.monotonic() + 300
  try:
    while not reached(path.read_text()):
      assert process.poll() is None, path.read_text()[-3000:]
      assert time.monotonic() < deadline
      time.sleep(0.01)
  finally:
    process.kill()
    process.wait()
  assert not (workdir / "results.json").exists()
  return path.read_text()


def left_behind(workdir):
  """What must not depend on what happened on the way."""
  records = metrics.read(workdir / "metrics.jsonl")
  result = json.loads((workdir / "results.json").read_text())
  for side in ("before", "after"):
    for key in ("sample_seconds", "harness_seconds"):
      del result[side][key]
  heldout = [
    json.loads(line)
    for line in (workdir / "heldout.jsonl").read_text().splitlines()
  ]
  for evaluation in heldout:
    del evaluation["seconds"]
  costs = {
    f"{part}.{key}": result["run"][part][key]
    for part in ("training", "evaluation")
    for key in ("tokens", "harness_calls")
  }
  talks = {}
  for path in [
    *workdir.glob("trajectories/*"),
    workdir / "conversations.jsonl.gz",
  ]:
    with gzip.open(path, "rt") as file:
      talks[path.name] = [json.loads(line) for line in file]
  for name, samples in talks.items():
    if name != "conversations.jsonl.gz":
      talks[name] = [
        [(turn["completion"], turn["feedback"]) for turn in sample["turns"]]
        for sample in samples
      ]
  return {
    "metrics": [metrics.reproducible(r) for r in records],
    "before": result["before"],
    "after": result["after"],
    "costs": costs,
    "heldout": heldout,
    "problems": (workdir / "problems.jsonl").read_text(),
    "talks": talks,
    "policy": {p.name: p.read_bytes() for p in workdir.glob("policy/*")},
    "config": json.loads((workdir / "config.json").read_text()),
  }


@pytest.fixture(scope="module")
def straight_folder(start, tmp_path_factory):
  """A run without interruption."""
  workdir = tmp_path_factory.mktemp("straight")
  code, errors = run(start, workdir)
  assert code == 0, errors[-3000:]
  return workdir


@pytest.fixture(scope="module")
def straight(straight_folder):
  """What it leaves behind."""
  return left_behind(straight_folder)


def test_the_warm_start_learns(straight):
  warm = [r["warm/loss"] for r in straight["metrics"] if "warm/loss" in r]
  assert len(warm) == 6 and warm[-1] < warm[0]
  assert [r["step"] for r in straight["metrics"]] == list(range(8))
  assert len(straight["talks"]["conversations.jsonl.gz"]) == 12


def test_a_run_killed_in_every_stage_is_the_run_without(
  start, straight, tmp_path
):
  workdir = tmp_path / "run"
  kill = lambda reached: kill_when(
    start, workdir, reached, "--config.run.num_iterations=1"
  )
  kill(lambda errors: "cold start:" in errors)
  kill(lambda errors: num_lines(workdir) >= 3)
  errors = kill(lambda errors: "held-out, before:" in errors)
  # Some warm-start steps were kept and some were lost.
  assert "resuming from checkpoint 2" in errors or "checkpoint 4" in errors
  kill(lambda errors: "leap:" in errors)
  errors = kill(lambda errors: "held-out, after:" in errors)
  assert "resuming from checkpoint 6: 6 warm-start steps, 0 iter" in errors

  # A picture that cannot be written: no results that tell of a finished run.
  blocked = workdir / "learning_curve.png"
  blocked.mkdir()
  code, errors = run(start, workdir, "--config.run.num_iterations=1")
  assert code == 1
  assert "the last checkpoint is of step 7" in errors.splitlines()[-1]
  assert not (workdir / "results.json").exists()
  blocked.rmdir()
  code, errors = run(start, workdir, "--config.run.num_iterations=1")
  assert code == 0, errors[-3000:]
  assert blocked.is_file()

  # Finished; more is asked for.
  code, errors = run(start, workdir)
  assert code == 0, errors[-3000:]
  assert "has 1 iterations; going on to 2" in errors
  got = left_behind(workdir)
  for name, expected in straight.items():
    assert got[name] == expected, name


def test_a_fork_of_the_warm_start_is_the_run_that_made_it(
  start, straight, straight_folder, tmp_path, capsys
):
  arguments = [
    "fork",
    str(straight_folder),
    "--rows=leap,grpo_multi_turn",
    f"--runs={tmp_path}",
  ]
  assert fork.main(arguments) == 0
  assert "2 new runs; 0 were there" in capsys.readouterr().out
  other = tmp_path / "grpo_multi_turn" / "seed0" / "config.json"
  assert json.loads(other.read_text())["method.name"] == "grpo_multi_turn"
  # What is there is left alone.
  assert fork.main(arguments) == 0
  assert "0 new runs; 2 were there" in capsys.readouterr().out
  origin = json.loads((other.parent / "forked_from.json").read_text())
  finished = json.loads((straight_folder / "results.json").read_text())["run"]
  assert origin["commit"] == finished["commit"]
  assert origin["hardware"] == finished["hardware"]
  # What the run had done by the end of its warm start, and no more.
  assert 0 < origin["seconds"] < finished["seconds_total"]
  assert origin["seconds"] >= finished["seconds"]["warm_start"]
  two = [*("fork", str(straight_folder), "--rows=leap", "--seeds=2")]
  assert fork.main([*two, f"--runs={tmp_path / 'seeds'}"]) == 0
  assert "2 new runs; 0 were there" in capsys.readouterr().out
  for seed in (0, 1):
    path = tmp_path / "seeds" / "leap" / f"seed{seed}" / "config.json"
    assert json.loads(path.read_text())["seed"] == seed
  another = [
    *("fork", str(straight_folder), f"--runs={tmp_path / 'rates'}"),
    *("--table=learning_rate", "--rows=leap,leap_half_rate"),
  ]
  assert fork.main([*another, "--learning_rate=0.5"]) == 0
  for name, rate in (("leap", 0.5), ("leap_half_rate", 0.25)):
    path = tmp_path / "rates" / name / "seed0" / "config.json"
    assert json.loads(path.read_text())["learner.learning_rate"] == rate
  assert fork.main([*another, "--learning_rate=0.25"]) == 2
  assert "learning_rate=0.5, now it is 0.25" in capsys.readouterr().err
  assert fork.main([*another, "--learning_rate=nan"]) == 2
  assert "--learning_rate=nan; a number above 0" in capsys.readouterr().err
  # A run that goes on from something else is not taken for ours.
  (other.parent / "forked_from.json").write_text(
    json.dumps(origin | {"checkpoint_sha256": "of another one"})
  )
  assert fork.main(arguments) == 2
  assert "does not go on from this cold start" in capsys.readouterr().err

  workdir = tmp_path / "leap" / "seed0"
  assert num_lines(workdir) == 8  # the iterations are to be done again
  code, errors = run(start, workdir)
  assert code == 0, errors[-3000:]
  assert "resuming from checkpoint 6: 6 warm-start steps, 0 iter" in errors
  got = left_behind(workdir)
  for name in set(straight) - {"talks"}:
    assert got[name] == straight[name], name


def test_a_fork_needs_a_warm_start(straight_folder, tmp_path, capsys):
  shutil.copy(straight_folder / "config.json", tmp_path)
  for source, words in (
    (tmp_path, "no checkpoint of the end of a warm start (6 steps)"),
    (tmp_path / "nothing", "no work folder"),
  ):
    assert fork.main(["fork", str(source), f"--runs={tmp_path}/runs"]) == 2
    assert words in capsys.readouterr().err
  assert fork.main(["fork", "--help"]) == 0
  assert "--rows=ROW,ROW" in capsys.readouterr().out
  assert fork.main(["fork", str(tmp_path)]) == 2
  assert "and --runs=DIR" in capsys.readouterr().err
  assert not (tmp_path / "runs").exists()
  assert not (tmp_path / "nothing").exists()
