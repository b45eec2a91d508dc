"""Runs as tables see them: read, and seen to be comparable.

Runs of a table may differ in their seed and in what their rows change, and in
nothing else: those of one seed go on from one cold start, or none does. Runs of
different commits or hardware are refused unless asked for.
"""

import dataclasses
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from experiments import collected, provenance, workdir
from experiments.config_file import UsageError
from experiments.rows import TABLES, Row

# What one row changes, another may have by default.
_CHANGED = {key for row in TABLES["all"] for key in row.settings} - {
  # Changed by few rows: the others must agree in it.
  "method.gamma"
}


_CONTROL = "random feedback"  # heldout.RANDOM_FEEDBACK, without loading JAX


class TableError(Exception):
  """The runs make no table; one line says which and why."""


@dataclasses.dataclass(frozen=True)
class Record:
  """One finished run."""

  path: pathlib.Path
  seed: int
  result: dict[str, Any]  # results.json
  metrics: list[dict[str, float]]  # by iteration
  evaluations: list[dict[str, Any]]  # held out; the first is before training
  control: list[dict[str, Any]]  # the last one with random feedback, or none
  problems: list[dict[str, Any]]  # training problems that were met
  # Content of the checkpoint that it goes on from, of another run.
  cold_start: str | None = None


def load(
  folder: pathlib.Path,
  rows: Sequence[Row],
  *,
  allow_mixed: bool,
) -> dict[str, list[Record]]:
  """All runs of some rows, by row name; sorted by seed.

  Args:
    folder: with ROW/seedN/results.json and its neighbours.
    rows: of a table.
    allow_mixed: take runs of different commits or hardware.

  Raises:
    TableError: a run cannot be read, lies in another one's folder, or is not
      to be compared with the others.
  """
  found: dict[str, list[Record]] = {}
  for row in rows:
    records = [
      _read(path.parent)
      for path in (folder / row.name).glob("seed*/results.json")
    ]
    for record in records:
      _check_place(record, row)
    found[row.name] = sorted(records, key=lambda record: record.seed)
  every = [record for records in found.values() for record in records]
  _check_alike(rows, found)
  _check_budgets(every)
  _check_cold_starts(every)
  if not allow_mixed:
    check_one_origin({record.path: record.result for record in every})
  return found


def _read(folder):
  try:
    result = json.loads((folder / "results.json").read_text("utf-8"))
    lines = lambda name: collected.read_lines(folder / f"{name}.jsonl.gz")
    heldout = lines("heldout")
    forked = workdir.origin(folder)
    record = Record(
      folder,
      result["run"]["seed"],
      result,
      [line for line in lines("metrics") if "rollout/acc_at_1" in line],
      [line for line in heldout if line["label"] != _CONTROL],
      [line for line in heldout if line["label"] == _CONTROL],
      lines("problems"),
      forked and forked["checkpoint_sha256"],
    )
    for key in ("commit", "hardware", "iterations"):
      result["run"][key]
    for evaluation in record.evaluations:
      for key in (
        "iteration",
        "seconds",
        "tokens",
        "harness_calls",
        "problems",
      ):
        evaluation[key]
  except (OSError, EOFError, ValueError, UsageError) as error:
    raise TableError(f"cannot read {folder}: {error}") from None
  except (KeyError, TypeError) as error:
    raise TableError(
      f"{folder} is not of this version ({error}); do that run again"
    ) from None
  if len(record.evaluations) < 2:
    raise TableError(f"{folder} has no held-out evaluation of its end")
  return record


def _check_place(record, row):
  config = record.result["config"]
  wanted = dict(row.settings) | {"seed": record.path.name.removeprefix("seed")}
  for key, value in wanted.items():
    if str(config.get(key)) != str(value):
      raise TableError(
        f"{record.path} is of {key}={config.get(key)}, its folder of {value}"
      )


def _check_alike(rows, found):
  """Settings that a row does not change are those of all rows."""
  # How many iterations were asked for says less than how many were done.
  may_differ = _CHANGED | {"seed", "run.num_iterations"}
  first: dict[str, tuple[Any, pathlib.Path]] = {}
  for row in rows:
    for record in found[row.name]:
      for key, value in workdir.as_now(record.result["config"]).items():
        if key in may_differ or key in row.settings:
          continue
        if key in row.factors:
          value = value / row.factors[key]
        other, path = first.setdefault(key, (value, record.path))
        if other != value:
          scaled = f" times {row.factors[key]}" if key in row.factors else ""
          raise TableError(
            f"{path} has {key}={other}, {record.path} {value}{scaled}: not to "
            "be compared"
          )


def used_up_s(records: Sequence[Record]) -> float | None:
  """Seconds of training that every run was given and has used; else None."""
  limits = {r.result["config"].get("run.max_training_s") for r in records}
  if len(limits) != 1 or None in limits:
    return None
  (limit,) = limits
  spent = min(record.evaluations[-1]["seconds"] for record in records)
  return limit if spent >= limit else None


def _check_budgets(records):
  """As many iterations, or the same time and all of it."""
  lengths = {r.result["run"]["iterations"]: r for r in records}
  if len(lengths) < 2 or used_up_s(records) is not None:
    return
  fewest, most = (lengths[n] for n in (min(lengths), max(lengths)))
  told = " and ".join(
    f"{r.path} has iterations={r.result['run']['iterations']} "
    f"({r.evaluations[-1]['seconds']:.0f} s of training)"
    for r in (fewest, most)
  )
  raise TableError(
    f"{told}: unequal budgets are not compared. Let all do as many iterations, "
    "or give all the same run.max_training_s and enough run.num_iterations to "
    "use it up"
  )


def _check_cold_starts(records):
  """Those of one seed have the same start: else the better one wins twice."""
  first: dict[int, Record] = {}
  for record in records:
    other = first.setdefault(record.seed, record)
    if record.cold_start != other.cold_start:
      told = lambda x: f"cold start {x[:12]}" if x else "no other run's"
      raise TableError(
        f"{other.path} goes on from {told(other.cold_start)}, {record.path} "
        f"from {told(record.cold_start)}: not to be compared. Make both from "
        "one cold start (python -m experiments.fork)"
      )


def told_of_cold_starts(records: Sequence[Record]) -> str:
  """Words on what seeds have in common, for a footnote; "" if nothing."""
  starts = {record.cold_start for record in records}
  seeds = {record.seed for record in records}
  if None in starts or len(starts) == len(seeds):
    return ""
  return (
    f" {len(seeds)} seeds go on from {len(starts)} cold start"
    f"{'s' if len(starts) > 1 else ''}: intervals are of training alone."
  )


def check_one_origin(results: Mapping[pathlib.Path, Mapping[str, Any]]) -> None:
  """Refuses numbers of several commits or kinds of hardware.

  Args:
    results: results.json of each run, by its path.

  Raises:
    TableError: says which differ.
  """
  clash = provenance.clash(results)
  if clash is not None:
    raise TableError(
      f"{clash}: do the older runs again, or add --allow_mixed, and what is "
      "made of them will say so"
    )


def origins(records: Sequence[Record]) -> dict[str, list[str]]:
  """Commits and hardware of runs, sorted."""
  return provenance.of(record.result for record in records)
