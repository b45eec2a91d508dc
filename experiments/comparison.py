"""One table of several runs as markdown and as CSV, the paper's beside ours."""

import csv
import dataclasses
import io
from collections.abc import Sequence

import numpy as np

from experiments import intervals, paper, provenance, time_to_accuracy
from experiments.columns import (
  COLUMNS,
  OF_ANY_EVALUATION,
  Column,
  Runs,
)
from experiments.intervals import Draws, Estimate
from experiments.records import origins, told_of_cold_starts, used_up_s
from experiments.rows import TABLES

NOT_RUN = "not run"


def _cell(estimate: Estimate, digits: int) -> str:
  if not np.isfinite(estimate.value):
    return "-"
  mean = f"{estimate.value:.{digits}f}"
  if not np.isfinite(estimate.low):
    return mean
  return f"{mean} [{estimate.low:.{digits}f}, {estimate.high:.{digits}f}]"


def estimates(
  table: str, runs: Runs, draws: Draws
) -> dict[str, dict[str, Estimate]]:
  """Every number of a table: row name -> column key -> estimate."""
  return {
    name: {
      column.key: intervals.estimate(column.values(runs, name, draws))
      for column in COLUMNS[table]
    }
    for name, records in runs.items()
    if records
  }


def _before_training(table, runs, draws) -> list[str]:
  """The row of the policy that training starts from; [] without a run.

  All rows start from it, and with the same keys: any one's first evaluation
  tells it.
  """
  found = [records for records in runs.values() if records]
  if not found:
    return []
  most = max(found, key=len)
  start = {
    "start": [
      dataclasses.replace(record, evaluations=record.evaluations[:1])
      for record in most
    ]
  }
  cells = []
  for column in COLUMNS[table]:
    estimate = Estimate(np.nan, np.nan, np.nan)
    if column.key in OF_ANY_EVALUATION:
      estimate = intervals.estimate(column.values(start, "start", draws))
    cells.append(_cell(estimate, column.digits))
    cells += ["-"] * _in_paper(table, column)
  return [f"| before training | {' | '.join(cells)} |"]


def _reported(table: str, row: str, column: Column) -> float | None:
  return paper.REPORTED.get(table, {}).get(row, {}).get(column.key)


def _in_paper(table: str, column: Column) -> bool:
  return any(
    column.key in row for row in paper.REPORTED.get(table, {}).values()
  )


def _length(every) -> str:
  limit = used_up_s(every)
  if limit is not None:
    return f"{limit:g} s of training"
  iterations = sorted({r.result["run"]["iterations"] for r in every})
  return f"{' or '.join(str(n) for n in iterations)} iterations"


def _coarse(table: str, runs: Runs, draws: Draws) -> list[str]:
  """Which ratios are of rows that are evaluated too rarely, if any."""
  found = []
  for column in COLUMNS[table]:
    if column.gaps is None:
      continue
    gaps = {
      name: column.gaps(runs, name, draws)
      for name, records in runs.items()
      if records
    }
    few = [
      f"{name} {count:.1f}"
      for name, count in gaps.items()
      if count < time_to_accuracy.MIN_GAPS
    ]
    if few:
      found.append(f"{column.key}: {', '.join(few)}")
  if not found:
    return []
  return [f"COARSE: {time_to_accuracy.COARSE}. Gaps: {'; '.join(found)}."]


def _footnote(table: str, runs: Runs, draws: Draws) -> Sequence[str]:
  every = [record for records in runs.values() for record in records]
  origin = origins(every)
  after = every[0].result["after"]
  seeds = {name: [r.seed for r in records] for name, records in runs.items()}
  uneven = [
    f"{name} only {', '.join(str(s) for s in have)}"
    for name, have in seeds.items()
    if have and len(have) < len(draws.seeds)
  ]
  few_seeds = intervals.told_of_seeds(draws)
  text = (
    f"{after['num_problems']} held-out problems, "
    f"{after['num_samples'] + after['num_faults']} samples a run, seeds "
    f"{', '.join(str(s) for s in draws.seeds)}"
    + (f" ({'; '.join(uneven)})" if uneven else "")
    + f"; {_length(every)}. Mean [95 % "
    f"interval], paired bootstrap over problems and seeds, "
    f"{len(draws.by_seed) - 1} draws"
    + (f" ({few_seeds})" if few_seeds else "")
    + f".{told_of_cold_starts(every)} Seconds, tokens and harness calls are of "
    "training: no held-out "
    f"evaluation, no compilation. Hardware: {'; '.join(origin['hardware'])}. "
    f"Commit: {', '.join(origin['commit'])}."
  )
  lines = [text]
  lines += provenance.mixtures([record.result for record in every])
  lines += _coarse(table, runs, draws)
  if table in paper.REPORTED:
    lines.append(paper.NOTE)
  return lines


def markdown(table: str, runs: Runs, draws: Draws | None) -> str:
  """The table, and lines on what it is made of.

  Args:
    table: of COLUMNS.
    runs: of every row of the table, maybe none.
    draws: None if there is no run at all.
  """
  found = estimates(table, runs, draws) if draws else {}
  header, cells = [], {row.name: [] for row in TABLES[table]}
  for column in COLUMNS[table]:
    header.append(column.label)
    for name, line in cells.items():
      have = name in found
      line.append(
        _cell(found[name][column.key], column.digits) if have else NOT_RUN
      )
    if _in_paper(table, column):
      header.append("paper")
      for name, line in cells.items():
        value = _reported(table, name, column)
        line.append("-" if value is None else f"{value:g}")
  lines = [
    f"| {table} | {' | '.join(header)} |",
    "|---" * (len(header) + 1) + "|",
  ]
  if table == "main" and draws:
    lines += _before_training(table, runs, draws)
  for row in TABLES[table]:
    lines.append(f"| {row.label} | {' | '.join(cells[row.name])} |")
  if draws:
    lines += ["", *_footnote(table, runs, draws)]
  return "\n".join(lines)


CSV_FIELDS = (
  "table", "row", "column", "mean", "low", "high", "paper", "seeds",
  "commit", "hardware",
)  # fmt: skip


def comma_separated(table: str, runs: Runs, draws: Draws | None) -> str:
  """The same numbers, one a line; `mean` of a row without runs is "not run"."""
  found = estimates(table, runs, draws) if draws else {}
  out = io.StringIO()
  writer = csv.DictWriter(out, CSV_FIELDS, lineterminator="\n")
  writer.writeheader()
  # 17 digits are a double; NaN is an empty field.
  number = lambda x: f"{x:.17g}" if np.isfinite(x) else ""
  for row in TABLES[table]:
    records = runs.get(row.name, ())
    origin = origins(records)
    for column in COLUMNS[table]:
      reported = _reported(table, row.name, column)
      line = {
        "table": table,
        "row": row.name,
        "column": column.key,
        "mean": NOT_RUN,
        "paper": "" if reported is None else f"{reported:g}",
        "seeds": " ".join(str(record.seed) for record in records),
        "commit": "; ".join(origin["commit"]),
        "hardware": "; ".join(origin["hardware"]),
      }
      if row.name in found:
        value, low, high = found[row.name][column.key]
        line |= {
          "mean": number(value),
          "low": number(low),
          "high": number(high),
        }
      writer.writerow(line)
  return out.getvalue()
