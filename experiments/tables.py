"""README tables from run folders, and from nothing else.

    python -m experiments.tables [--runs=experiments/results/quickstart]
    python -m experiments.tables --write=README.md

A row is a method, its numbers are means over seeds with the sample standard
deviation; a method without a run reads "not run". `--write` replaces what
stands between the markers of a Markdown file.
"""

import argparse
import json
import pathlib
import statistics
import sys
from collections.abc import Sequence
from typing import Any

METHODS = {  # folder: label
  "leap": "**LEAP**",
  "grpo_multi_turn": "GRPO multi-turn, unpruned",
  "grpo_single_turn": "GRPO single-turn",
}
RESULTS = pathlib.Path(__file__).parent / "results" / "quickstart"
BEGIN, END = (
  "<!-- quickstart table: begin -->",
  "<!-- quickstart table: end -->",
)
_NOT_RUN = "not run"


class TableError(Exception):
  """A file is missing or damaged; one line says which."""


def load(folder: pathlib.Path) -> dict[str, list[dict[str, Any]]]:
  """results.json of every seed, by method; sorted by seed.

  Raises:
    TableError: a file cannot be read.
  """
  runs = {}
  for method in METHODS:
    runs[method] = []
    for path in sorted((folder / method).glob("seed*/results.json")):
      try:
        runs[method].append(json.loads(path.read_text()))
      except (OSError, ValueError) as error:
        raise TableError(f"cannot read {path}: {error}") from None
  return runs


def _value(results: Sequence[dict], pick, scale=1.0, digits=1) -> str:
  values = [pick(r) for r in results]
  values = [scale * v for v in values if v is not None]
  if not values:
    return "-"
  mean = f"{statistics.mean(values):.{digits}f}"
  if len(values) < 2:
    return mean
  return f"{mean} ± {statistics.stdev(values):.{digits}f}"


def _training_seconds(result) -> float:
  seconds = result["run"]["seconds"]
  return sum(
    seconds.get(s, 0) for s in ("sample", "harness", "update", "other")
  )


_COLUMNS = (
  (
    "Acc@1 before → after, %",
    lambda rs: (
      f"{_value(rs, lambda r: r['before']['acc_at_1'], 100)} → "
      f"{_value(rs, lambda r: r['after']['acc_at_1'], 100)}"
    ),
  ),
  ("Acc@2, %", lambda rs: _value(rs, lambda r: r["after"]["acc_at_2"], 100)),
  ("Acc@3, %", lambda rs: _value(rs, lambda r: r["after"]["acc_at_3"], 100)),
  (
    "recovery, %",
    lambda rs: _value(rs, lambda r: r["after"]["recovery_rate"], 100),
  ),
  (
    "turns per pass",
    lambda rs: _value(rs, lambda r: r["after"]["turns_per_pass"], digits=2),
  ),
  (
    "groups debugged, %",
    lambda rs: _value(rs, lambda r: r["run"]["activation"], 100),
  ),
  (
    "turns trained on",
    lambda rs: _value(rs, lambda r: r["run"]["turns"], digits=0),
  ),
  ("training, s", lambda rs: _value(rs, _training_seconds, digits=0)),
  (
    "whole run, s",
    lambda rs: _value(rs, lambda r: r["run"]["seconds_total"], digits=0),
  ),
)


def markdown(runs: dict[str, list[dict[str, Any]]]) -> str:
  """The table and a line on hardware, seeds and commits."""
  names = [name for name, _ in _COLUMNS]
  lines = [
    "| method | " + " | ".join(names) + " |",
    "|---" * (len(names) + 1) + "|",
  ]
  for method, label in METHODS.items():
    results = runs[method]
    cells = [make(results) if results else _NOT_RUN for _, make in _COLUMNS]
    lines.append(f"| {label} | " + " | ".join(cells) + " |")
  every = [r for results in runs.values() for r in results]
  if every:
    seeds = {len(results) for results in runs.values() if results}
    after = every[0]["after"]
    hardware = sorted({r["run"]["hardware"] for r in every})
    commits = sorted({r["run"]["commit"] for r in every})
    lines += [
      "",
      f"{after['num_problems']} held-out problems, {after['num_samples']} "
      f"samples a run; mean ± standard deviation over "
      f"{', '.join(str(s) for s in sorted(seeds))} seeds; "
      f"{every[0]['run']['iterations']} iterations from the same warm start. "
      f"Hardware: {'; '.join(hardware)}. Commit: {', '.join(commits)}.",
    ]
  return "\n".join(lines)


def write(path: pathlib.Path, table: str) -> bool:
  """Puts the table between the markers; returns whether it was another one.

  Raises:
    TableError: the file has no markers.
  """
  text = path.read_text()
  if BEGIN not in text or END not in text:
    raise TableError(f"{path} has no line `{BEGIN}` ... `{END}`")
  head, rest = text.split(BEGIN, 1)
  _, tail = rest.split(END, 1)
  new = f"{head}{BEGIN}\n{table}\n{END}{tail}"
  if new != text:
    path.write_text(new)
  return new != text


def main(argv: Sequence[str]) -> int:
  """Prints or writes the table."""
  parser = argparse.ArgumentParser(
    prog="python -m experiments.tables",
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.add_argument("--runs", type=pathlib.Path, default=RESULTS)
  parser.add_argument("--write", type=pathlib.Path, default=None)
  arguments = parser.parse_args(argv)
  try:
    table = markdown(load(arguments.runs))
    if arguments.write is None:
      print(table)
    else:
      write(arguments.write, table)
  except (TableError, OSError) as error:
    print(f"experiments.tables: {error}", file=sys.stderr)
    return 2
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
