"""Runs of several methods that go on from one cold start.

    python -m experiments.fork WORKDIR --table=main --rows=ROW,ROW --runs=DIR

WORKDIR is a run that has come to the end of its warm start (with
`--config.run.num_iterations=0` it does nothing else). Its state then, and what
it has measured by then, become those of a new run of each row, in the folder in
which `python -m experiments.sweep --runs=DIR` looks for it and lets it go on:
the same policy to the last bit, and one cold start to wait for.
"""

import pathlib
import shutil
import sys
from collections.abc import Sequence

from absl import flags

from experiments import rows, sweep_plan, workdir
from experiments.config_file import UsageError

_FILES = (
  "conversations.jsonl.gz",
  "tokenizer.json",  # of a policy that started from nothing
  "metrics.jsonl",
  "heldout.jsonl",
)


def fork(
  source: pathlib.Path, wanted: Sequence[rows.Row], runs: pathlib.Path
) -> list[pathlib.Path]:
  """Makes the folders of the new runs.

  Args:
    source: work folder of the run with the warm start.
    wanted: what the new runs are.
    runs: of a sweep.

  Returns:
    The folders, as far as they were not there.

  Raises:
    UsageError: there is nothing to go on from.
  """
  settings = workdir.settings_of(source)
  steps = settings["warm_start.num_steps"]
  checkpoint = source / "checkpoints" / str(steps)
  if not steps or not checkpoint.is_dir():
    raise UsageError(
      f"{source} has no checkpoint of the end of a warm start ({steps} steps); "
      "run it with --config.run.num_iterations=0"
    )
  made = []
  for row in wanted:
    folder = runs / row.name / f"seed{settings['seed']}"
    if folder.exists():
      continue
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(checkpoint, part / "checkpoints" / checkpoint.name)
    for name in _FILES:
      if (source / name).exists():
        shutil.copy(source / name, part / name)
    workdir.record(part, rows.changed(row, settings))
    part.rename(folder)
    made.append(folder)
  return made


def _arguments(argv):
  values = flags.FlagValues()
  for name, default in (("table", "main"), ("rows", None), ("runs", None)):
    flags.DEFINE_string(name, default, "see above", flag_values=values)
  try:
    rest = values(argv)
  except flags.Error as error:
    raise UsageError(str(error)) from None
  if len(rest) != 2 or values.runs is None:
    raise UsageError("give the work folder of a cold start, and --runs=DIR")
  return pathlib.Path(rest[1]), values


def main(argv: list[str]) -> int:
  """Forks from the command line; returns the exit status."""
  try:
    source, values = _arguments(argv)
    executor = workdir.settings_of(source)["harness.executor"]
    wanted = sweep_plan.chosen(values.table, values.rows, executor)
    with workdir.held(source):
      made = fork(source, wanted, pathlib.Path(values.runs))
  except (UsageError, OSError) as error:
    print(f"experiments.fork: {error}", file=sys.stderr)
    return 2
  for folder in made:
    print(folder)
  print(f"{len(made)} new runs; {len(wanted) - len(made)} were there")
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv))
