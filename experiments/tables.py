"""README tables from run folders, and from nothing else.

    python -m experiments.tables [--runs=experiments/results/quickstart]
    python -m experiments.tables --write=README.md

A row is a method, its numbers are means over seeds with the sample standard
deviation; a method without a run reads "not run". Runs that differ in more than
method and seed are refused. `--write` replaces what
stands between the markers of a Markdown file.
"""

import argparse
import json
import pathlib
import statistics
import sys
from collections.abc import Sequence
from typing import Any

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


class TableError(Exception):
  """The runs make no table; one line says which and why."""


def load(folder: pathlib.Path) -> dict[str, list[dict[str, Any]]]:
  """results.json of every seed, by method; sorted by seed.

  Raises:
    TableError: a file cannot be read, lies in the folder of another method or
      seed, or is of another configuration than the others.
  """
  runs: dict[str, list[dict[str, Any]]] = {}
  first = None
  for method in METHODS:
    runs[method] = []
    for path in sorted((folder / method).glob("seed*/results.json")):
      result = _read(path, method)
      first = first or (path, result)
      _check_alike(*first, path, result)
      runs[method].append(result)
    runs[method].sort(key=lambda result: result["run"]["seed"])
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
  hardware = sorted({r["run"]["hardware"] for r in every})
  commits = sorted({r["run"]["commit"] for r in every})
  sizes = _sizes(every[0])  # `load` has seen to it that all are alike
  return (
    f"{sizes['held-out problems']} held-out problems, {sizes['samples']} "
    "samples a run; mean ± standard deviation over seeds "
    f"{', '.join(str(s) for s in seeds)}; {sizes['iterations']} iterations "
    "from the same warm start. A harness call is one turn. All stages: from "
    "loading the policy to the last held-out result; imports, the start of the "
    "judges and the picture come on top. Hardware: "
    f"{'; '.join(hardware)}. Commit: {', '.join(commits)}."
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


def write(
  path: pathlib.Path, table: str, begin: str = BEGIN, end: str = END
) -> bool:
  """Puts the table between the markers; returns whether it was another one.

  Raises:
    TableError: the file has no markers.
  """
  text = path.read_text()
  if begin not in text or end not in text:
    raise TableError(f"{path} has no line `{begin}` ... `{end}`")
  head, rest = text.split(begin, 1)
  _, tail = rest.split(end, 1)
  new = f"{head}{begin}\n{table}\n{end}{tail}"
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
