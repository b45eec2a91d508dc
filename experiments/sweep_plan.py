"""What a sweep has to do: which runs, which of them are done, how long the rest
will take. Reads folders, writes nothing."""

import copy
import dataclasses
import pathlib
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from experiments import budget, collected, provenance, rows, workdir
from experiments import settings as settings_lib
from experiments.config_file import UsageError, near


@dataclasses.dataclass(frozen=True)
class Planned:
  """One run of the sweep."""

  row: rows.Row
  seed: int
  settings: Mapping[str, Any]  # flat, all of them
  arguments: tuple[str, ...]  # of experiments.run
  run_folder: pathlib.Path
  target: pathlib.Path

  @property
  def name(self) -> str:
    """For people."""
    return f"{self.row.name} seed {self.seed}"


def chosen(
  table: str | None, only: str | None, executor: str
) -> list[rows.Row]:
  """The rows that are asked for.

  Args:
    table: of rows.TABLES.
    only: names of some of its rows, with commas; None = all that this executor
      can run.
    executor: of the harness; "cpu" times nothing.

  Raises:
    UsageError: names what there is.
  """
  tables = ", ".join(rows.TABLES)
  if table is None:
    raise UsageError(f"no table: add --table=, one of {tables}")
  if table not in rows.TABLES:
    hint = near(table, rows.TABLES)
    raise UsageError(f"no table {table}; there are {tables}{hint}")
  members = {row.name: row for row in rows.TABLES[table]}
  if only is None:
    is_timed = lambda row: row.settings["harness.timing"]
    return [
      row for row in members.values() if executor != "cpu" or not is_timed(row)
    ]
  wanted = [name.strip() for name in only.split(",")]
  for name in wanted:
    if name not in members:
      raise UsageError(
        f"no row {name} in table {table}; there are "
        f"{', '.join(members)}{near(name, members)}"
      )
  return [members[name] for name in dict.fromkeys(wanted)]


def _flag(key, value):
  return f"--config.{key}={value}"


def plan(
  argv: Sequence[str],
  config,
  wanted: Sequence[rows.Row],
  seeds: Sequence[int],
  runs: pathlib.Path,
  results: pathlib.Path,
) -> list[Planned]:
  """Every run of the sweep, seed by seed, so that tables fill evenly.

  Args:
    argv: the command line; its settings are passed on.
    config: what they made of the config file.
    wanted: rows.
    seeds: of each row.
    runs: folder of the runs.
    results: folder of what is kept of them.

  Raises:
    UsageError: before anything has been run.
  """
  path = settings_lib.config_path(argv[1:])
  given = [a for a in argv[1:] if a.lstrip("-").startswith("config.")]
  for argument in given:
    if "=" not in argument:
      raise UsageError(f"{argument}: write {argument}=VALUE, in one word")
    key = argument.lstrip("-").split("=", 1)[0].removeprefix("config.")
    if key == "seed" or any(key in row.settings for row in wanted):
      raise UsageError(
        f"--config.{key} is what the runs of the table differ in; leave it out"
      )
  planned = []
  for seed in seeds:
    for row in wanted:
      own = copy.deepcopy(config)
      flat = settings_lib.flat(own)
      flat = rows.changed(row, flat) | {"seed": seed}
      changed = {
        key: flat[key] for key in (*row.settings, *row.factors, "seed")
      }
      # One run's settings, checked as that run will check them.
      own.update_from_flattened_dict(changed)
      settings_lib.validate(own)
      planned.append(
        Planned(
          row,
          seed,
          settings_lib.flat(own),
          (
            f"--config={path}",
            *given,
            *(_flag(key, value) for key, value in changed.items()),
          ),
          runs / row.name / f"seed{seed}",
          results / row.name / f"seed{seed}",
        )
      )
  return planned


def seconds_if_done(
  folder: pathlib.Path, planned: Planned, replace: bool
) -> float | None:
  """Seconds of a finished run that is the planned one; None: to be done.

  Those of a cold start that it has from another run are not its own.

  Raises:
    UsageError: it is of another configuration.
  """
  result = workdir.outcome(folder)
  if result is None:
    return None
  try:
    found = collected.difference(result, dict(planned.settings))
    if found is None:
      done = budget.is_spent(
        result["run"]["iterations"],
        result["run"]["training_seconds"],
        num_iterations=planned.settings["run.num_iterations"],
        max_training_s=planned.settings["run.max_training_s"],
      )
      if not done:
        return None
      before = (workdir.origin(folder) or {}).get("seconds", 0.0)
      return float(result["run"]["seconds_total"]) - before
  except (KeyError, TypeError) as error:
    raise UsageError(f"{folder} is not of this version ({error})") from None
  if replace:
    return None
  key, got, wanted = found
  raise UsageError(
    f"{folder} holds a run with config.{key}={got}, the sweep wants {wanted}; "
    "use other --runs and --results, or --replace for kept results"
  )


def check_cold_starts(planned: Sequence[Planned]) -> None:
  """What is there of one seed goes on from one cold start, or none of it does.

  Raises:
    UsageError: no table would be made of them.
  """
  first: dict[int, tuple[str | None, pathlib.Path]] = {}
  for one in planned:
    is_kept = workdir.outcome(one.target) is not None
    folder = one.target if is_kept else one.run_folder
    found = (workdir.origin(folder) or {}).get("checkpoint_sha256")
    other, path = first.setdefault(one.seed, (found, folder))
    if found != other:
      told = lambda x: f"cold start {x[:12]}" if x else "none of another run"
      raise UsageError(
        f"{path} goes on from {told(other)}, {folder} from {told(found)}: no "
        "table compares them. Fork all rows of a seed from one cold start, and "
        "keep folders of runs and of results together"
      )


def unsure_commit(planned: Sequence[Planned]) -> str | None:
  """Words on code that no commit names, if tables will refuse its runs."""
  commit = provenance.commit()
  if len(planned) < 2 or provenance.is_sure(commit):
    return None
  return (
    f"this code is of commit {commit}, which names no one state: tables refuse "
    "several runs of it. Commit first, in a checkout that git reads"
  )


def other_commits(
  planned: Sequence[Planned], left: Sequence[Planned]
) -> str | None:
  """Words on kept results of which no table can be made, with what is left.

  Args:
    planned: all runs of the sweep.
    left: those that are to be done by the code as it is now.

  Returns:
    None if all are of one commit.
  """
  done: dict[str, list[str]] = {}
  for one in planned:
    result = None if one in left else workdir.outcome(one.target)
    if result is not None:
      for commit in provenance.of([result])["commit"]:
        done.setdefault(commit, []).append(one.name)
  now = {provenance.commit()} if left else set()
  if len(now | set(done)) < 2:
    return None
  told = "; ".join(
    f"{commit}: {', '.join(names)}" for commit, names in sorted(done.items())
  )
  return (
    f"kept results are of commit {told}"
    + (f"; what is run now is of {', '.join(now)}" if now else "")
    + ". Tables mix commits only by --allow_mixed: to do those runs again, "
    "remove their folders of results and of runs"
  )


def _about(seconds: float) -> str:
  if seconds < 90:
    return f"{seconds:.0f} s"
  minutes = round(seconds / 60)
  return f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def time_left(left: Sequence[Planned], known: Mapping[str, list[float]]):
  """Words on how long the runs that are left will take."""
  every = [s for seconds in known.values() for s in seconds]
  if not every:
    return "time left: known when the first run has ended"
  typical = statistics.mean(every)
  total = sum(
    statistics.mean(known[p.row.name]) if known.get(p.row.name) else typical
    for p in left
  )
  return f"about {_about(total)} left"
