"""headline.sh: the commands that it gives are those that the modules take."""

import json
import os
import pathlib
import subprocess

import pytest

from experiments import fork as fork_lib
from experiments import headline, settings
from experiments import run as run_lib
from experiments import sweep as sweep_lib

ROOT = pathlib.Path(__file__).parents[2]
SCRIPT = ROOT / "experiments" / "headline.sh"
KEPT = ROOT / "experiments" / "results" / headline.FOLDER


@pytest.fixture
def given(tmp_path):
  """given(*arguments, **environment) -> status, and words of each command."""
  fake = tmp_path / "bin" / "python"
  fake.parent.mkdir()
  log = tmp_path / "log"
  fake.write_text(
    "#!/bin/bash\n"
    f'{{ printf "%s\\t" "$@" "$JAX_COMPILATION_CACHE_DIR"; echo; }} >> {log}\n'
  )
  fake.chmod(0o755)

  def call(*arguments, **environment):
    log.write_text("")
    done = subprocess.run(
      ["bash", SCRIPT, *arguments],
      env={
        **os.environ,
        "PATH": f"{fake.parent}:{os.environ['PATH']}",
        **environment,
      },
      capture_output=True,
    )
    lines = log.read_text().splitlines()
    return done.returncode, [line.split("\t")[:-1] for line in lines]

  return call


def test_one_cold_start_and_one_sweep(given):
  status, (asked, cold, fork, sweep) = given("model.gguf")
  assert status == 0
  caches = {words[-1] for words in (cold, fork, sweep)}
  # The cold start and the rows share their programs.
  assert caches == {str(ROOT / "runs" / "headline" / "compiled")}
  modules = [words[1] for words in (cold, fork, sweep)]
  assert modules == [f"experiments.{x}" for x in ("run", "fork", "sweep")]
  # What is wrong with the sweep is said before anything runs.
  assert asked[:-1] == [*sweep[:-1], "--dry_run"]
  config, values = settings.parse(["run", *cold[2:-1]], run_lib._define)
  assert config.run.num_iterations == config.seed == 0
  source, forked = fork_lib._arguments(["fork", *fork[2:-1]])
  assert str(source) == values.workdir
  config, swept = settings.parse(["sweep", *sweep[2:-1]], sweep_lib._define)
  # Another time would not repeat what is kept.
  (kept,) = {
    result["config"]["run.max_training_s"]
    for path in KEPT.glob("*/*/results.json")
    for result in [json.loads(path.read_text())]
  }
  assert config.run.max_training_s == kept
  assert config.policy.source == "model.gguf"
  assert (swept.first_seed, swept.seeds) == (0, 2)
  assert (forked.seeds, forked.rows) == (swept.seeds, swept.rows)
  assert forked.table == swept.table == "headline"
  assert forked.runs == swept.runs
  # Not among the kept results, which would be found finished.
  assert swept.results == "runs/headline/results"


def test_another_gpu_does_another_seed_in_other_folders(given, tmp_path):
  status, (_, cold, _, sweep) = given(
    "m",
    "--config.harness.executor=auto",
    RUNS=str(tmp_path / "r"),
    RESULTS="kept1",
    TRAINING_S="80.0",
    FIRST_SEED="1",
  )
  assert status == 0
  assert sweep[-1] == str(tmp_path / "r" / "compiled")
  for word in (
    "--first_seed=1",
    "--seeds=2",
    "--results=kept1",
    f"--runs={tmp_path / 'r' / 'rows'}",
    "--config.run.max_training_s=80.0",
    "--config.harness.executor=auto",
  ):
    assert word in sweep
  assert f"--workdir={tmp_path / 'r' / 'cold'}" in cold
  assert "--config.harness.executor=auto" in cold


def test_a_mistake_runs_nothing(given):
  for arguments in ((), ("--config.seed=1",)):
    status, commands = given(*arguments)
    assert status == 2 and not commands
