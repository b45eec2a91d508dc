"""Runs what a table lacks, one run after another, each in its own process.

    python -m experiments.sweep --table=TABLE --config=FILE [--seeds=3]
        [--first_seed=0] [--rows=ROW,ROW] [--runs=DIR] [--results=DIR]
        [--replace] [--dry_run] [--config.X.Y=V ...]

A run that has been stopped goes on at its last checkpoint; one that is finished
is not done again. Stop the sweep by Ctrl-C and start it again by the same
command. Results are collected as each run ends; `python -m experiments.tables`
makes tables of them. Runs share what XLA has compiled (RUNS/compiled): no table
shows that time.
"""

import contextlib
import ctypes
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from absl import flags

from experiments import collected, rows, sweep_plan, workdir
from experiments import settings as settings_lib
from experiments.config_file import Occupied, UsageError, asks_for_help
from experiments.sweep_plan import Planned, seconds_if_done

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2
# A run's own: its request is wrong, and so is that of the others; the machine
# failed, or the run's last process still holds its folder.
_RUN_USAGE, _RUN_MACHINE = 2, 4
_STOP_S = 120  # a run that is told to stop may take this long
_PR_SET_PDEATHSIG = 1


class Stopped(Exception):
  """The sweep was told to end."""


def _define(values: flags.FlagValues) -> None:
  text = lambda name, default, meaning: flags.DEFINE_string(
    name, default, meaning, flag_values=values
  )
  text("table", None, f"which: {', '.join(rows.TABLES)}")
  text("rows", None, "only these of it, with commas")
  text("runs", None, "folder of the runs (default: runs/sweep/CONFIG)")
  text("results", None, "of what is kept (default: experiments/results/CONFIG)")
  flags.DEFINE_integer("seeds", 3, "seeds 0, 1, ...", 1, flag_values=values)
  flags.DEFINE_integer(
    "first_seed",
    0,
    "leave out those before it: another machine does them",
    0,
    flag_values=values,
  )
  flags.DEFINE_bool(
    "replace",
    False,
    "do runs again whose kept results are of another configuration",
    flag_values=values,
  )
  flags.DEFINE_bool(
    "dry_run", False, "say what there is to do, do nothing", flag_values=values
  )


def _help() -> None:
  print(__doc__)
  for table, members in rows.TABLES.items():
    if table != "all":
      print(f"  {table + ':':11}{', '.join(row.name for row in members)}")


@contextlib.contextmanager
def _results_held(results: pathlib.Path) -> Iterator[None]:
  """Keeps other sweeps out of the results; leaves no file there."""
  try:
    results.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(results, os.O_RDONLY)
  except OSError as error:
    raise UsageError(
      f"cannot use {results}: {error.strerror or error}"
    ) from None
  try:
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    yield
  except BlockingIOError:
    raise UsageError(
      f"another sweep is writing to {results}; wait for it, or use another "
      "--results"
    ) from None
  finally:
    os.close(descriptor)


def _end_with_parent() -> None:
  """In a run's process: it stops, as by Ctrl-C, when the sweep dies."""
  ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)


def _run(planned: Planned) -> int:
  """One run in its own process; returns its exit status."""
  process = subprocess.Popen(
    [
      sys.executable,
      "-m",
      "experiments.run",
      *planned.arguments,
      f"--workdir={planned.run_folder}",
    ],
    stdout=subprocess.DEVNULL,  # its table; ours comes later
    env={
      "JAX_COMPILATION_CACHE_DIR": str(
        planned.run_folder.parents[1].absolute() / "compiled"
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
      process.wait(timeout=_STOP_S)
    except subprocess.TimeoutExpired:
      process.kill()
      process.wait()
    raise


def _run_again_if_machine_failed(planned: Planned) -> int:
  """`_run`; once more where not the run but the machine was at fault."""
  code = _run(planned)
  if code != _RUN_MACHINE:
    return code
  _wait_until_free(planned.run_folder)
  _say(f"{planned.name}: a fault of the machine (see above); once more")
  return _run(planned)


def _wait_until_free(run_folder: pathlib.Path) -> None:
  """Gives another process, perhaps at its last checkpoint, time to end."""
  deadline = time.monotonic() + _STOP_S
  while time.monotonic() < deadline:
    try:
      with workdir.held(run_folder):
        return
    except Occupied:
      time.sleep(0.5)


def _say(text: str) -> None:
  print(f"experiments.sweep: {text}", file=sys.stderr, flush=True)


def _plan(argv, config, values) -> list[Planned]:
  stem = pathlib.Path(settings_lib.config_path(argv[1:])).stem
  kept = pathlib.Path(__file__).parent / "results" / stem
  if values.first_seed >= values.seeds:
    raise UsageError(
      f"--first_seed={values.first_seed}; at most {values.seeds - 1}, the last "
      f"of --seeds={values.seeds}"
    )
  return sweep_plan.plan(
    argv,
    config,
    sweep_plan.chosen(values.table, values.rows, config.harness.executor),
    range(values.first_seed, values.seeds),
    pathlib.Path(values.runs or f"runs/sweep/{stem}"),
    pathlib.Path(values.results or kept),
  )


def _survey(planned: Sequence[Planned], replace: bool):
  """What is done, what is to be collected, what is to be run; known times."""
  to_run, known = [], {}
  for one in planned:
    seconds = seconds_if_done(one.target, one, replace)
    if seconds is None:
      finished = seconds_if_done(one.run_folder, one, False)
      if finished is not None:
        collected.collect(one.run_folder, one.target)
        seconds = finished
    if seconds is None:
      to_run.append(one)
    else:
      known.setdefault(one.row.name, []).append(seconds)
  return to_run, known


def _warn_of_commits(planned, left) -> None:
  mixed = sweep_plan.other_commits(planned, left)
  if mixed is not None:
    _say(mixed)


def _describe(planned: Sequence[Planned], replace: bool) -> int:
  """--dry_run."""
  left, known = [], {}
  for one in planned:
    seconds = seconds_if_done(one.target, one, replace)
    words = "finished" if seconds is not None else "to be run"
    if seconds is None:
      seconds = seconds_if_done(one.run_folder, one, False)
      lines = one.run_folder / "metrics.jsonl"
      if seconds is not None:
        words = "finished, to be collected"
      elif lines.exists():
        # Lines of the warm start are no iterations.
        done = lines.read_text("utf-8").count('"rollout/acc_at_1"')
        of = one.settings["run.num_iterations"]
        words = f"to go on: {done} of {of} iterations"
    if seconds is None:
      left.append(one)
    else:
      known.setdefault(one.row.name, []).append(seconds)
    print(f"{one.name:34} {words}")
  rest = sweep_plan.time_left(left, known)
  print(f"{len(left)} of {len(planned)} runs to do; {rest}")
  _warn_of_commits(planned, left)
  return EXIT_OK


def _sweep(planned: Sequence[Planned], replace: bool) -> int:
  """Does what is left; a run that fails does not keep others from running."""
  left, known = _survey(planned, replace)
  _warn_of_commits(planned, left)
  failed = []
  while left:
    one = left[0]
    number = len(planned) - len(left) + 1
    rest = sweep_plan.time_left(left, known)
    _say(f"[{number}/{len(planned)}] {one.name}; {rest}")
    code = _run_again_if_machine_failed(one)
    left = left[1:]
    if code == _RUN_USAGE:
      _say(f"{one.name} could not start (see above); the sweep ends")
      return EXIT_USAGE
    seconds = seconds_if_done(one.run_folder, one, False)
    if code or seconds is None:
      _say(f"{one.name} failed with status {code}; going on with the others")
      failed.append(one.name)
      continue
    collected.collect(one.run_folder, one.target)
    known.setdefault(one.row.name, []).append(seconds)
  done = len(planned) - len(failed)
  _say(f"{done} of {len(planned)} runs are in {planned[0].target.parents[1]}")
  if failed:
    _say(f"failed: {', '.join(failed)}; the same command tries again")
  return EXIT_FAILED if failed else EXIT_OK


def _stop(*_) -> None:
  # Once: the run is given its time to end.
  for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
  raise Stopped


def main(argv: list[str]) -> int:
  """Sweeps from the command line; returns the exit status."""
  if asks_for_help(argv):
    _help()
    return EXIT_OK
  before = {}
  try:
    config, values = settings_lib.parse(argv, _define)
    planned = _plan(argv, config, values)
    if values.dry_run:
      return _describe(planned, values.replace)
    for number in (signal.SIGINT, signal.SIGTERM):
      before[number] = signal.signal(number, _stop)
    with contextlib.ExitStack() as stack:
      runs, results = (
        folder.parents[1]
        for folder in (planned[0].run_folder, planned[0].target)
      )
      stack.enter_context(workdir.held(runs, "--runs"))
      stack.enter_context(_results_held(results))
      return _sweep(planned, values.replace)
  except UsageError as error:
    _say(error)
    return EXIT_USAGE
  except OSError as error:
    where = f" ({error.filename})" if error.filename else ""
    _say(f"{error.strerror or error}{where}")
    return EXIT_FAILED
  except Stopped:
    _say("stopped; the same command goes on")
    return EXIT_FAILED
  finally:
    for number, handler in before.items():
      signal.signal(number, handler)


if __name__ == "__main__":
  sys.exit(main(sys.argv))
