"""Several processes of one run: alike, or all end with the same line."""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

import pytest

from experiments import endings, run
from leap_jax import policy_io

ROOT = pathlib.Path(__file__).parents[2]
CONFIG = pathlib.Path(__file__).parent / "tiny_run.py"


def run_two(tmp_path, arguments, own):
  """Exit statuses, last lines of stderr and seconds of two processes.

  Args:
    tmp_path: each process works in a folder of its number below it.
    arguments: of both.
    own: of each.
  """
  with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
  started = time.monotonic()
  both = []
  for i in range(2):
    (tmp_path / str(i)).mkdir(exist_ok=True)
    both.append(
      subprocess.Popen(
        [
          sys.executable,
          "-m",
          "experiments.run",
          f"--config={CONFIG}",
          f"--workdir={tmp_path / 'run'}",
          f"--coordinator=127.0.0.1:{port}",
          "--num_processes=2",
          f"--process_id={i}",
          *arguments,
          *own[i],
        ],
        cwd=tmp_path / str(i),
        env={**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
      )
    )
  try:
    errors = [process.communicate(timeout=60)[1] for process in both]
  finally:
    for process in both:
      process.kill()
      process.communicate()
  return (
    [process.returncode for process in both],
    [
      [line for line in text.splitlines() if line.startswith("experiments.run")]
      for text in errors
    ],
    time.monotonic() - started,
  )


def test_a_policy_that_one_host_lacks_ends_both(tmp_path):
  shutil.copytree(policy_io.SHIPPED, tmp_path / "1" / "policy")
  statuses, lines, seconds = run_two(
    tmp_path, ["--config.policy.source=policy"], [(), ()]
  )
  assert statuses == [2, 2], lines
  (here,), (there,) = lines
  assert here.startswith("experiments.run: no policy in policy")
  assert there == here.replace("run: ", "run: process 0: ")
  assert seconds < 30


def test_settings_that_differ_are_named_in_both(tmp_path):
  statuses, lines, _ = run_two(
    tmp_path, (), [(), ["--config.learner.learning_rate=0.01"]]
  )
  assert statuses == [2, 2], lines
  for (line,) in lines:
    assert "process 0 has config.learner.learning_rate=" in line
    assert "process 1 has config.learner.learning_rate=0.01" in line
  assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
  "arguments,words",
  [
    (["--process_id=1"], "--process_id=1: must be below --num_processes=1"),
    (["--coordinator=a:1"], "--num_processes=1 with --coordinator=a:1"),
    (["--num_processes=2"], "--num_processes=2 with --coordinator=None"),
    (["--num_processes=2", "--coordinator=a"], "--coordinator=a: must be host"),
  ],
)
def test_flags_of_processes_that_do_not_go_together(
  tmp_path, capsys, arguments, words
):
  folder = tmp_path / "run"
  argv = ["run", f"--config={CONFIG}", f"--workdir={folder}", *arguments]
  assert run.main(argv) == endings.EXIT_USAGE
  assert words in capsys.readouterr().err.strip().splitlines()[-1]
  assert not folder.exists()
