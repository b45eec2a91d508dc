"""A sweep that is ended, in a process of its own."""

import pathlib
import signal
import subprocess
import sys
import time

import pytest

from tests.experiments.command_lines import QUICKSTART, ROOT

_SWEEP = """
import sys
from experiments import sweep, sweep_run
popen = sweep_run.subprocess.Popen
def start(command, **options):
  if command[0] == "git":
    return popen(command, **options)
  wait = "import time; print('begun', flush=True); time.sleep(60)"
  options["stdout"] = None
  child = popen([command[0], "-c", wait], **options)
  print(child.pid, flush=True)
  return child
sweep_run.subprocess.Popen = start
sys.exit(sweep.main(["sweep", *sys.argv[1:]]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_ends_with_its_sweep(tmp_path, number):
  process = subprocess.Popen(
    [
      sys.executable,
      "-c",
      _SWEEP,
      f"--config={QUICKSTART}",
      f"--runs={tmp_path / 'runs'}",
      f"--results={tmp_path / 'kept'}",
      "--table=credit",
      "--rows=leap,gamma_0",
      "--seeds=2",
    ],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    cwd=ROOT,
  )
  first = {process.stdout.readline().strip() for _ in range(2)}
  (child,) = first - {"begun"}
  process.send_signal(number)
  _, errors = process.communicate(timeout=60)
  if number == signal.SIGINT:
    assert process.returncode == 1
    assert "stopped; the same command goes on" in errors
  deadline = time.monotonic() + 30
  while pathlib.Path(f"/proc/{child}").exists():
    assert time.monotonic() < deadline
    time.sleep(0.05)
