"""One run of a sweep, in a process of its own."""

import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import IO

from experiments import endings, workdir
from experiments.config_file import Occupied

STOP_S = 120
"""A run that is told to stop may take so long."""
_PR_SET_PDEATHSIG = 1


class Stopped(Exception):
  """The sweep was told to end."""


def _end_with_parent() -> None:
  """In a run's process: it stops, as by Ctrl-C, when the sweep dies."""
  ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)


def _run(arguments, run_folder, errors) -> int:
  process = subprocess.Popen(
    [
      sys.executable,
      "-m",
      "experiments.run",
      *arguments,
      f"--workdir={run_folder}",
    ],
    stdout=subprocess.DEVNULL,  # its table; ours comes later
    stderr=errors,
    env={
      "JAX_COMPILATION_CACHE_DIR": str(
        run_folder.parents[1].absolute() / "compiled"
      ),
      **os.environ,
    },
    preexec_fn=_end_with_parent,
    # Ctrl-C reaches the sweep alone, which passes it on once.
    start_new_session=True,
  )
  try:
    return process.wait()
  except Stopped:
    process.send_signal(signal.SIGINT)
    try:
      process.wait(timeout=STOP_S)
    except subprocess.TimeoutExpired:
      process.kill()
      process.wait()
    raise


def run(
  arguments: Sequence[str],
  run_folder: pathlib.Path,
  say: Callable[[str], None],
  errors: IO | None = None,
) -> int:
  """Runs; once more where not the run but the machine was at fault.

  Args:
    arguments: of experiments.run.
    run_folder: its --workdir.
    say: told of a second try.
    errors: where its progress and its errors go; None = where ours go.

  Returns:
    The exit status.

  Raises:
    Stopped: passed on by a handler of signals; the run has been ended.
  """
  code = _run(arguments, run_folder, errors)
  if code != endings.EXIT_MACHINE:
    return code
  _wait_until_free(run_folder)
  say("a fault of the machine (see above); once more")
  return _run(arguments, run_folder, errors)


def _wait_until_free(run_folder: pathlib.Path) -> None:
  """Gives another process, perhaps at its last checkpoint, time to end."""
  deadline = time.monotonic() + STOP_S
  while time.monotonic() < deadline:
    try:
      with workdir.held(run_folder):
        return
    except Occupied:
      time.sleep(0.5)
