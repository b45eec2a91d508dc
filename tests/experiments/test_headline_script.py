"""headline.sh: the commands that it gives are those that the modules take."""

import os
import pathlib
import subprocess

import pytest

from experiments import rows, settings
from experiments import run as run_lib
from experiments import sweep as sweep_lib

ROOT = pathlib.Path(__file__).parents[2]
SCRIPT = ROOT / "experiments" / "headline.sh"


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


def test_a_cold_start_a_seed_and_one_sweep(given):
  status, commands = given("model.gguf")
  assert status == 0
  modules = [words[1].removeprefix("experiments.") for words in commands]
  assert modules == ["run", "fork", "run", "fork", "sweep"]
  caches = {words[-1] for words in commands}
  # One for all: the cold start and the rows share their programs.
  assert caches == {str(ROOT / "runs" / "headline" / "compiled")}
  colds = []
  for words in commands:
    module, arguments = words[1].removeprefix("experiments."), words[2:-1]
    if module == "run":
      config, values = settings.parse(["run", *arguments], run_lib._define)
      assert config.run.num_iterations == 0
      colds.append((config.seed, values.workdir))
    elif module == "fork":
      assert arguments[0] == colds[-1][1]
      assert "--runs=runs/headline/rows" in arguments
    else:
      config, values = settings.parse(["sweep", *arguments], sweep_lib._define)
      assert config.run.max_training_s == 100
      assert config.policy.source == "model.gguf"
      assert (values.first_seed, values.seeds) == (0, 2)
      assert values.runs == "runs/headline/rows"
      assert values.results == "experiments/results/headline_0_5b"
      known = {row.name for row in rows.TABLES[values.table]}
      assert set(values.rows.split(",")) <= known
  assert [seed for seed, _ in colds] == [0, 1]


def test_another_gpu_does_another_seed_in_other_folders(given, tmp_path):
  status, commands = given(
    "m", "1", "1", RUNS=str(tmp_path / "r"), RESULTS="kept1", TRAINING_S="80.0"
  )
  assert status == 0
  assert [words[1].split(".")[1] for words in commands] == [
    "run",
    "fork",
    "sweep",
  ]
  sweep = commands[-1]
  assert sweep[-1] == str(tmp_path / "r" / "compiled")
  for word in (
    "--first_seed=1",
    "--seeds=2",
    "--results=kept1",
    f"--runs={tmp_path / 'r' / 'rows'}",
    "--config.run.max_training_s=80.0",
  ):
    assert word in sweep
  assert f"--workdir={tmp_path / 'r' / 'cold' / 'seed1'}" in commands[0]


def test_a_mistake_runs_nothing(given):
  for arguments in ((), ("m", "0"), ("m", "0", "1", "2")):
    status, commands = given(*arguments)
    assert status == 2 and not commands
