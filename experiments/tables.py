"""Tables from run folders, and from nothing else.

    python -m experiments.tables [--runs=experiments/results/quickstart]
    python -m experiments.tables --table=main --runs=RESULTS [--csv=FILE]
    python -m experiments.tables --table=all --runs=RESULTS --plots=DIR
    python -m experiments.tables --write=README.md

Without --table, the quickstart's: a row is a method, its numbers are means over
seeds with the sample standard deviation. With one, a table of the paper beside
ours, from what `experiments.sweep` has left: mean and 95 % interval. A row
without a run reads "not run". Runs that differ in more than what their rows
change are refused; so are runs of different commits or hardware unless
--allow_mixed is given, and then the table says so. `--write` replaces what
stands between the markers of a Markdown file.
"""

import argparse
import json
import pathlib
import statistics
import sys
from collections.abc import Sequence
from typing import Any

from experiments import provenance, records
from experiments.config_file import near
from experiments.records import TableError
from experiments.rows import TABLES

METHODS = {  # folder: label, config
  "leap": ("**LEAP**", "quickstart"),
  "grpo_multi_turn": ("GRPO multi-turn, unpruned", "quickstart_grpo_multi"),
  "grpo_single_turn": ("GRPO single-turn", "quickstart_grpo_single"),
}
RESULTS = pathlib.Path(__file__).parent / "results" / "quickstart"
BEGIN, END = (
  "<!-- quickstart table: begin -->",
  "<!-- quickstart table: end -->",
)
_NOT_RUN = "not run"
# In which the runs of a table may differ; all else would compare two things.
_MAY_DIFFER = ("seed", "method.name")


def markers(table: str) -> tuple[str, str]:
  """Lines of a Markdown file between which a table stands."""
  return (f"<!-- {table} table: begin -->", f"<!-- {table} table: end -->")


def load(
  folder: pathlib.Path, *, allow_mixed: bool = False
) -> dict[str, list[dict[str, Any]]]:
  """results.json of every seed, by method; sorted by seed.

  Args:
    folder: of the quickstart's results.
    allow_mixed: take runs of different commits or hardware.

  Raises:
    TableError: a file cannot be read, lies in the folder of another method or
      seed, or is of another configuration than the others.
  """
  runs: dict[str, list[dict[str, Any]]] = {}
  every: dict[pathlib.Path, dict[str, Any]] = {}
  first = None
  for method in METHODS:
    runs[method] = []
    for path in sorted((folder / method).glob("seed*/results.json")):
      result = _read(path, method)
      first = first or (path, result)
      _check_alike(*first, path, result)
      every[path] = result
      runs[method].append(result)
    runs[method].sort(key=lambda result: result["run"]["seed"])
  if not allow_mixed:
    records.check_one_origin(every)
  return runs


def _read(path, method):
  try:
    result = json.loads(path.read_text())
    for _, make in _COLUMNS:
      make([result])
    _footnote([result])
    _check_place(path, method, result)
  except (OSError, ValueError) as error:
    raise TableError(f"cannot read {path}: {error}") from None
  except (KeyError, TypeError) as error:
    raise TableError(
      f"{path} is not of this version ({error}); do that run again"
    ) from None
  return result


def _check_place(path, method, result):
  for name, wanted, got in (
    ("method", method, result["config"]["method.name"]),
    ("seed", path.parent.name, f"seed{result['config']['seed']}"),
  ):
    if wanted != got:
      raise TableError(f"{path} is of {name} {got}, its folder of {wanted}")


def _check_alike(path, result, other_path, other):
  config, other_config = result["config"], other["config"]
  for key in sorted(set(config) | set(other_config)):
    if key in _MAY_DIFFER:
      continue
    if config.get(key) != other_config.get(key):
      raise TableError(
        f"{path} has config.{key}={config.get(key)}, {other_path} "
        f"{other_config.get(key)}: not to be compared"
      )
  for key, value in _sizes(result).items():
    if _sizes(other)[key] != value:
      raise TableError(
        f"{path} has {value} {key}, {other_path} {_sizes(other)[key]}"
      )


def _sizes(result):
  """What the footnote says of all runs at once."""
  after = result["after"]
  return {
    "iterations": result["run"]["iterations"],
    "held-out problems": after["num_problems"],
    "samples": after["num_samples"] + after["num_faults"],
  }


def _value(results: Sequence[dict], pick, scale=1.0, digits=1) -> str:
  values = [pick(r) for r in results]
  values = [scale * v for v in values if v is not None]
  if not values:
    return "-"
  mean = f"{statistics.mean(values):.{digits}f}"
  if len(values) < 2:
    return mean
  return f"{mean} ± {statistics.stdev(values):.{digits}f}"


def _training(key, scale=1.0):
  """Of training alone: evaluations cost all methods the same."""
  return lambda results: _value(
    results, lambda r: r["run"]["training"][key], scale, digits=0
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
  ("training: tokens, thousands", _training("tokens", 1e-3)),
  ("training: harness calls", _training("harness_calls")),
  ("training, s", _training("seconds")),
  (
    "all stages, s",
    lambda rs: _value(rs, lambda r: r["run"]["seconds_total"], digits=0),
  ),
)


def _footnote(every):
  seeds = sorted({r["run"]["seed"] for r in every})
  origin = provenance.of(every)
  sizes = _sizes(every[0])  # `load` has seen to it that all are alike
  return (
    f"{sizes['held-out problems']} held-out problems, {sizes['samples']} "
    "samples a run; mean ± standard deviation over seeds "
    f"{', '.join(str(s) for s in seeds)}; {sizes['iterations']} iterations "
    "from the same warm start. A harness call is one turn. All stages: from "
    "loading the policy to the last held-out result; imports, the start of the "
    "judges and the picture come on top. Hardware: "
    f"{'; '.join(origin['hardware'])}. Commit: {', '.join(origin['commit'])}."
    + "".join(f"\n{line}" for line in provenance.mixtures(every))
  )


def markdown(runs: dict[str, list[dict[str, Any]]]) -> str:
  """The table and a line on hardware, seeds and commits."""
  names = [name for name, _ in _COLUMNS]
  lines = [
    "| method | " + " | ".join(names) + " |",
    "|---" * (len(names) + 1) + "|",
  ]
  for method, (label, config) in METHODS.items():
    results = runs[method]
    cells = [make(results) if results else _NOT_RUN for _, make in _COLUMNS]
    link = f"[{label}](experiments/configs/{config}.py)"
    lines.append(f"| {link} | " + " | ".join(cells) + " |")
  every = [r for results in runs.values() for r in results]
  if every:
    lines += ["", _footnote(every)]
  return "\n".join(lines)


def between(path: pathlib.Path, begin: str, end: str) -> str:
  """What stands between two markers of a file.

  Raises:
    TableError: the file has no markers.
  """
  _, inner, _ = _parts(path, begin, end)
  return inner.strip("\n")


def _parts(path, begin, end):
  text = path.read_text()
  if begin not in text or end not in text:
    raise TableError(f"{path} has no line `{begin}` ... `{end}`")
  head, rest = text.split(begin, 1)
  inner, tail = rest.split(end, 1)
  return head, inner, tail


def write(
  path: pathlib.Path, table: str, begin: str = BEGIN, end: str = END
) -> bool:
  """Puts the table between the markers; returns whether it was another one.

  Raises:
    TableError: the file has no markers.
  """
  head, inner, tail = _parts(path, begin, end)
  if inner == f"\n{table}\n":
    return False
  path.write_text(f"{head}{begin}\n{table}\n{end}{tail}")
  return True


def _chosen(name: str) -> list[str]:
  """Tables that are asked for."""
  from experiments import columns

  if name == "all":
    return list(columns.COLUMNS)
  if name not in columns.COLUMNS:
    names = ("quickstart", "all", *columns.COLUMNS)
    raise TableError(
      f"no table {name}; there are {', '.join(names)}{near(name, names)}"
    )
  return [name]


def _compare(arguments) -> None:
  """Tables of sweeps, and their pictures."""
  from experiments import comparison, intervals, plots

  if arguments.runs is None:
    raise TableError(
      f"--table={arguments.table} needs --runs=, a sweep's folder of results"
    )
  if not arguments.runs.is_dir():
    raise TableError(f"no folder {arguments.runs}")
  texts = {}
  for name in _chosen(arguments.table):
    runs = records.load(
      arguments.runs, TABLES[name], allow_mixed=arguments.allow_mixed
    )
    draws = intervals.draw(runs) if any(runs.values()) else None
    table = comparison.markdown(name, runs, draws)
    if arguments.write is None:
      print(table + "\n")
    else:
      write(arguments.write, table, *markers(name))
    texts[name] = comparison.comma_separated(name, runs, draws)
    if arguments.plots is not None and draws is not None:
      for path in plots.draw(arguments.plots, name, runs, draws):
        print(path, file=sys.stderr)
  if arguments.csv is not None:
    # One header: the first line of the first table.
    lines = [text.split("\n", 1) for text in texts.values()]
    arguments.csv.write_text(
      lines[0][0] + "\n" + "".join(rest for _, rest in lines)
    )


def _quickstart(arguments) -> None:
  """The README's first table."""
  table = markdown(
    load(arguments.runs or RESULTS, allow_mixed=arguments.allow_mixed)
  )
  if arguments.write is None:
    print(table)
  else:
    write(arguments.write, table)


def main(argv: Sequence[str]) -> int:
  """Prints or writes tables."""
  parser = argparse.ArgumentParser(
    prog="python -m experiments.tables",
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
    allow_abbrev=False,
  )
  path = pathlib.Path
  parser.add_argument(
    "--table",
    default="quickstart",
    help=f"quickstart (the default), {', '.join(TABLES)}",
  )
  parser.add_argument("--runs", type=path, help="folder of results")
  parser.add_argument("--write", type=path, help="a Markdown file")
  parser.add_argument("--csv", type=path, help="file for the same numbers")
  parser.add_argument("--plots", type=path, help="folder for pictures")
  parser.add_argument("--allow_mixed", action="store_true")
  arguments = parser.parse_args(argv)
  try:
    if arguments.table == "quickstart":
      _quickstart(arguments)
    else:
      _compare(arguments)
  except (TableError, OSError) as error:
    print(f"experiments.tables: {error}", file=sys.stderr)
    return 2
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
