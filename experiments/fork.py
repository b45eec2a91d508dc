"""Runs of several methods that go on from one cold start.

    python -m experiments.fork WORKDIR --table=main --rows=ROW,ROW --runs=DIR
        [--seeds=N] [--learning_rate=RATE]

WORKDIR is a run that has come to the end of its warm start (with
`--config.run.num_iterations=0` it does nothing else). Its state then, and what
it has measured by then, become those of a new run of each row, in the folder in
which `python -m experiments.sweep --runs=DIR` looks for it and lets it go on:
the same policy to the last bit, and one cold start to wait for. What they go on
from stands in their forked_from.json.

--seeds=N makes runs of the seeds 0 to N - 1: one cold start, drawn from and
trained N times. Without it they have the seed of WORKDIR. --learning_rate=RATE
gives them another config.learner.learning_rate: the warm start has one of its
own. Give it to the sweep, too.
"""

import hashlib
import json
import math
import pathlib
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from absl import flags

from experiments import provenance, rows, sweep_plan, workdir
from experiments.config_file import UsageError, asks_for_help

_FILES = (
  "conversations.jsonl.gz",
  "tokenizer.json",  # of a policy that started from nothing
  "metrics.jsonl",
  "heldout.jsonl",
)


def _origin(source: pathlib.Path, checkpoint: pathlib.Path) -> dict[str, Any]:
  """forked_from.json: the checkpoint's content, what it was made by, and the
  seconds that runs of it begin with.

  `commit` and `hardware` are None where the cold start has no results.json.
  """
  digest = hashlib.sha256()
  for path in sorted(p for p in checkpoint.rglob("*") if p.is_file()):
    digest.update(f"{path.relative_to(checkpoint)}\n".encode())
    with open(path, "rb") as file:
      digest.update(hashlib.file_digest(file, "sha256").digest())
  run = (workdir.outcome(source) or {}).get("run", {})
  # Orbax's place for the record beside a state (leap_jax/checkpoint.py).
  record = json.loads((checkpoint / "record" / "metadata").read_text())
  return {
    "checkpoint_sha256": digest.hexdigest(),
    "commit": run.get("commit"),
    "hardware": run.get("hardware"),
    "seconds": sum(record["seconds"].values()),
  }


def _check_origin(folder: pathlib.Path, origin: dict[str, Any]) -> None:
  found = workdir.origin(folder)
  key = "checkpoint_sha256"
  if found is None or found[key] != origin[key]:
    raise UsageError(
      f"{folder} holds a run that does not go on from this cold start; use "
      "other --runs, or move it away"
    )


def fork(
  source: pathlib.Path,
  wanted: Sequence[rows.Row],
  runs: pathlib.Path,
  learning_rate: float | None = None,
  seeds: Sequence[int] | None = None,
) -> list[pathlib.Path]:
  """Makes the folders of the new runs.

  Args:
    source: work folder of the run with the warm start.
    wanted: what the new runs are.
    runs: of a sweep.
    learning_rate: of the new runs; None = as in `source`. Rows that scale it
      scale this one.
    seeds: of the new runs; None = that of `source`.

  Returns:
    The folders, as far as they were not there.

  Raises:
    UsageError: there is nothing to go on from, or a folder is of a run that
      went on from something else; none has been made.
  """
  settings = workdir.settings_of(source)
  if learning_rate is not None:
    settings = {**settings, "learner.learning_rate": learning_rate}
  steps = settings["warm_start.num_steps"]
  checkpoint = source / "checkpoints" / str(steps)
  if not steps or not checkpoint.is_dir():
    raise UsageError(
      f"{source} has no checkpoint of the end of a warm start ({steps} steps); "
      "run it with --config.run.num_iterations=0"
    )
  origin = _origin(source, checkpoint)
  new = {
    runs / row.name / f"seed{seed}": rows.changed(row, settings)
    | {"seed": seed}
    for seed in (seeds or [settings["seed"]])
    for row in wanted
  }
  for folder, changed in new.items():
    if folder.exists():
      _check_origin(folder, origin)
      workdir.check(folder, changed)
  made = []
  for folder, changed in new.items():
    if folder.exists():
      continue
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(checkpoint, part / "checkpoints" / checkpoint.name)
    for name in _FILES:
      if (source / name).exists():
        shutil.copy(source / name, part / name)
    workdir.record(part, changed)
    workdir.write_json(part / workdir.FORKED_FROM, origin)
    part.rename(folder)
    made.append(folder)
  return made


def _warn_of_commit(made):
  """Their runs would have parts of two commits, of which no table is made."""
  before = made and workdir.origin(made[0])["commit"]
  now = provenance.commit()
  if before and before != now:
    print(
      f"experiments.fork: the cold start is of commit {before}, runs now are "
      f"of {now}: tables take such runs only by --allow_mixed",
      file=sys.stderr,
    )


def _arguments(argv):
  values = flags.FlagValues()
  for name, default in (("table", "main"), ("rows", None), ("runs", None)):
    flags.DEFINE_string(name, default, "see above", flag_values=values)
  flags.DEFINE_float("learning_rate", None, "see above", flag_values=values)
  flags.DEFINE_integer("seeds", None, "see above", 1, flag_values=values)
  try:
    rest = values(argv)
  except flags.Error as error:
    raise UsageError(str(error)) from None
  if len(rest) != 2 or values.runs is None:
    raise UsageError("give the work folder of a cold start, and --runs=DIR")
  rate = values.learning_rate
  if rate is not None and not 0 < rate < math.inf:
    raise UsageError(f"--learning_rate={rate}; a number above 0")
  return pathlib.Path(rest[1]), values


def main(argv: list[str]) -> int:
  """Forks from the command line; returns the exit status."""
  if asks_for_help(argv):
    print(__doc__)
    return 0
  try:
    source, values = _arguments(argv)
    executor = workdir.settings_of(source)["harness.executor"]
    wanted = sweep_plan.chosen(values.table, values.rows, executor)
    with workdir.held(source):
      made = fork(
        source,
        wanted,
        pathlib.Path(values.runs),
        values.learning_rate,
        values.seeds and range(values.seeds),
      )
  except (UsageError, OSError) as error:
    print(f"experiments.fork: {error}", file=sys.stderr)
    return 2
  for folder in made:
    print(folder)
  _warn_of_commit(made)
  number = len(wanted) * (values.seeds or 1)
  print(f"{len(made)} new runs; {number - len(made)} were there")
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv))
