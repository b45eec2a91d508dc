"""Runs what a table lacks, one run after another, each in its own process.

    python -m experiments.sweep --table=TABLE --config=FILE [--seeds=3]
        [--first_seed=0] [--rows=ROW,ROW] [--runs=DIR] [--results=DIR]
        [--replace] [--dry_run] [--ray_address=HOST:PORT] [--config.X.Y=V ...]

A run that has been stopped goes on at its last checkpoint; one that is finished
is not done again. Stop the sweep by Ctrl-C and start it again by the same
command. Results are collected as each run ends; `python -m experiments.tables`
makes tables of them. Runs share what XLA has compiled (RUNS/compiled): no table
shows that time. --ray_address spreads them over the machines of a Ray cluster
(experiments/sweep_ray.py).
"""

import contextlib
import fcntl
import os
import pathlib
import signal
import sys
from collections.abc import Iterator, Sequence

from absl import flags

from experiments import (
  collected,
  endings,
  rows,
  sweep_plan,
  sweep_ray,
  sweep_run,
  workdir,
)
from experiments import settings as settings_lib
from experiments.config_file import UsageError, asks_for_help
from experiments.sweep_plan import Planned, seconds_if_done
from kernels_eval.client import HarnessError

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2


def _define(values: flags.FlagValues) -> None:
  text = lambda name, default, meaning: flags.DEFINE_string(
    name, default, meaning, flag_values=values
  )
  text("table", None, f"which: {', '.join(rows.TABLES)}")
  text("rows", None, "only these of it, with commas")
  text("runs", None, "folder of the runs (default: runs/sweep/CONFIG)")
  text("results", None, "of what is kept (default: experiments/results/CONFIG)")
  text("ray_address", None, "host:port of a Ray cluster that does the runs")
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
  for words in (
    sweep_plan.unsure_commit(left),
    sweep_plan.other_commits(planned, left),
  ):
    if words is not None:
      _say(words)


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


def _one_by_one(left, known, total) -> Iterator[tuple[Planned, int]]:
  """Runs here, one behind the other; yields each and its exit status."""
  for place, one in enumerate(left):
    rest = sweep_plan.time_left(left[place:], known)
    _say(f"[{total - len(left) + place + 1}/{total}] {one.name}; {rest}")
    say = lambda text, one=one: _say(f"{one.name}: {text}")
    yield one, sweep_run.run(one.arguments, one.run_folder, say)


def _on_ray(left, known, total, address) -> Iterator[tuple[Planned, int]]:
  """Runs on the machines of a cluster; yields each and its exit status."""
  open_ = {one.name: one for one in left}
  with contextlib.closing(sweep_ray.run_all(left, address, _say)) as runs:
    for one, code in runs:
      yield one, code
      del open_[one.name]
      rest = sweep_plan.time_left(list(open_.values()), known)
      _say(
        f"[{total - len(open_)}/{total}] {one.name} has ended; {rest}, if one "
        "machine does it"
      )


def _sweep(planned: Sequence[Planned], replace: bool, address) -> int:
  """Does what is left; a run that fails does not keep others from running."""
  left, known = _survey(planned, replace)
  _warn_of_commits(planned, left)
  failed = []
  if address is None or not left:
    runs = _one_by_one(left, known, len(planned))
  else:
    runs = _on_ray(left, known, len(planned), address)
  with contextlib.closing(runs):
    for one, code in runs:
      if code == endings.EXIT_USAGE:
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
  raise sweep_run.Stopped


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
      # What is not there may still be forked.
      sweep_plan.check_cold_starts(
        [x for x in planned if x.run_folder.exists() or x.target.exists()]
      )
      return _describe(planned, values.replace)
    sweep_plan.check_cold_starts(planned)
    for number in (signal.SIGINT, signal.SIGTERM):
      before[number] = signal.signal(number, _stop)
    with contextlib.ExitStack() as stack:
      runs, results = (
        folder.parents[1]
        for folder in (planned[0].run_folder, planned[0].target)
      )
      stack.enter_context(workdir.held(runs, "--runs"))
      stack.enter_context(_results_held(results))
      return _sweep(planned, values.replace, values.ray_address)
  except UsageError as error:
    _say(error)
    return EXIT_USAGE
  except HarnessError as error:
    _say(error)
    return EXIT_FAILED
  except OSError as error:
    where = f" ({error.filename})" if error.filename else ""
    _say(f"{error.strerror or error}{where}")
    return EXIT_FAILED
  except sweep_run.Stopped:
    _say("stopped; the same command goes on")
    return EXIT_FAILED
  finally:
    for number, handler in before.items():
      signal.signal(number, handler)


if __name__ == "__main__":
  sys.exit(main(sys.argv))
