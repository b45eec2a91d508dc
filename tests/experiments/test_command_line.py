"""The program's first second: a mistake is answered before JAX is loaded."""

import os
import subprocess
import sys

import pytest

from experiments import (
  export,
  fork,
  headline,
  parity,
  run,
  ship,
  sweep,
  tables,
)
from experiments.bench import __main__ as bench
from tests.experiments.command_lines import QUICKSTART, ROOT


@pytest.mark.parametrize(
  "arguments,code,words",
  [
    (["--config.learner.learning_rat=1"], 2, "learning_rate"),
    (["--config.policy.source=/nowhere"], 2, "no policy in /nowhere"),
    (
      ["--config.harness.backend=ray", "--config.harness.ray_address=nowhere"],
      4,
      "infrastructure_error: the Ray address nowhere is not of the form",
    ),
  ],
)
def test_the_program_exits_with_one_line(tmp_path, arguments, code, words):
  done = subprocess.run(
    [
      sys.executable,
      "-m",
      "experiments.run",
      f"--config={QUICKSTART}",
      f"--workdir={tmp_path / 'run'}",
      *arguments,
    ],
    cwd=ROOT,
    capture_output=True,
    text=True,
    env={**os.environ, "JAX_PLATFORMS": "cpu"},
  )
  assert done.returncode == code
  last = done.stderr.strip().splitlines()[-1]
  assert last.startswith("experiments.run: ") and words in last
  assert "Traceback" not in done.stderr


_MISTAKE = """
import sys
from experiments import run
code = run.main(["run", *sys.argv[1:]])
print(code, [m for m in ("jax", "flax", "orbax", "optax") if m in sys.modules])
"""


@pytest.mark.parametrize(
  "argument",
  [
    "--config.learner.learning_rat=1e-5",
    "--config.method.name=leep",
    "--config.policy.size=huge",
    "--config.rollout.group_size=8.5",
    "--config.method.f_lo=0.95",
    "--no_such_flag=1",
    "--help",
  ],
)
@pytest.mark.covers("P16")
def test_a_mistake_is_answered_before_jax_is_loaded(argument):
  done = subprocess.run(
    [sys.executable, "-c", _MISTAKE, f"--config={QUICKSTART}", argument],
    cwd=ROOT,
    capture_output=True,
    text=True,
  )
  code = 0 if argument == "--help" else 2
  assert done.stdout.splitlines()[-1] == f"{code} []", done.stderr


def test_help_shows_every_setting():
  done = subprocess.run(
    [sys.executable, "-m", "experiments.run", "--help"],
    cwd=ROOT,
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0
  assert "--config.method.gamma=0.4" in done.stdout
  assert "--workdir" in done.stdout


@pytest.mark.parametrize(
  "program",
  [bench, export, fork, parity, run, ship, sweep],
)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_every_program_has_help(program, flag, capsys):
  assert program.main(["program", flag]) == 0
  assert "python -m experiments." in capsys.readouterr().out


@pytest.mark.parametrize("program", [headline, tables])
def test_programs_that_parse_their_own_have_help_too(program, capsys):
  with pytest.raises(SystemExit) as end:
    program.main(["--help"])
  assert end.value.code == 0
  assert "python -m experiments." in capsys.readouterr().out
