"""The README's table of speeds, from the JSON files of `record`.

python -m experiments.bench table [--write=README.md]
"""

import argparse
import json
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from experiments import tables
from experiments.bench import peaks
from experiments.bench.record import RESULTS

BEGIN, END = "<!-- bench table: begin -->", "<!-- bench table: end -->"
_SHARED = (
  " Where prompts are shared: in brackets, of the time in which a group reads "
  "its prompt once."
)
_KINDS = ("sampler", "peers", "update", "devices", "step")  # in this order


def load(folder: pathlib.Path) -> list[dict[str, Any]]:
  """Every measurement, by kind, model size and batch.

  Raises:
    TableError: a file cannot be read or lacks a field.
  """
  found = []
  for path in sorted(folder.glob("*.json")):
    try:
      record = json.loads(path.read_text())
      _row(record), record["hardware"], record["commit"], record["batch"]
      found.append(record)
    except (OSError, ValueError, KeyError, TypeError) as error:
      raise tables.TableError(f"cannot use {path}: {error!r}") from None
  order = lambda r: (
    _KINDS.index(r["kind"]),
    r.get("num_params", 0),
    r["batch"],
  )
  return sorted(found, key=order)


def _number(record, key, scale=1.0, digits=0):
  value = record.get(key)
  return "-" if value is None else f"{scale * value:,.{digits}f}"


def _roofline(record):
  text = _number(record, "roofline_fraction", 100)
  if record.get("shared_prompts") and text != "-":
    text += f" ({_number(record, 'shared_roofline_fraction', 100)})"
  return text


def _whole_step(record):
  """What it took, and where."""
  gate = [] if record["gate"] == "own" else [f", gate {record['gate']}"]
  split = record["split_seconds"]
  parts = ", ".join(f"{part} {split[part]:.2f}" for part in sorted(split))
  return [*gate, f", {record['seconds']:.2f} s ({parts})"]


def _measured(record):
  kind = record["kind"]
  _KINDS.index(kind)  # of another one nobody knows the place
  words = [", shared prompts"] if record.get("shared_prompts") else []
  if kind != "devices" and record.get("devices", 1) > 1:
    words.append(f" on {record['devices']} devices")
  if kind == "step":
    words += _whole_step(record)
  return kind + "".join(words)


def _rows(record):
  rows, slots = record.get("rows", record["batch"]), record["batch"]
  return str(rows) if rows == slots else f"{rows} in {slots} slots"


def _against(record):
  one = record.get("one_device")
  if one is not None:
    return (
      f"1 of {record['devices']} devices: {record['times_faster']:.2f} x "
      f"(sampling {record['sample_times_faster']:.2f} x, update "
      f"{record['update_times_faster']:.2f} x)"
    )
  texts = [
    f"{name} {peer['version']}: {peer['times_faster']:.1f} x, lengths varied "
    f"{peer['varied_times_faster']:.1f} x"
    for name, peer in sorted(record.get("peers", {}).items())
  ]
  return "; ".join(texts) or "-"


_COLUMNS = (
  ("measured", _measured),
  ("model", lambda r: r["model"]),
  ("rows", _rows),
  ("tokens/s", lambda r: _number(r, "tokens_per_second")),
  ("ms a decoding step", lambda r: _number(r, "ms_per_decode_step", 1, 2)),
  ("bandwidth roofline, %", _roofline),
  ("MFU, %", lambda r: _number(r, "mfu", 100)),
  ("useful slots, %", lambda r: _number(r, "useful_slot_fraction", 100)),
  (
    "neither sampling nor updating, %",
    lambda r: _number(r, "idle_fraction", 100),
  ),
  ("peak memory, GiB", lambda r: _number(r, "peak_memory_gib", 1, 1)),
  ("compilations", lambda r: _number(r, "compilations")),
  ("faster than", _against),
)


def _row(record):
  return [make(record) for _, make in _COLUMNS]


def markdown(records: Sequence[dict[str, Any]]) -> str:
  """The table and a line on hardware and commits."""
  names = [name for name, _ in _COLUMNS]
  lines = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
  lines += ["| " + " | ".join(_row(r)) + " |" for r in records]
  if not records:
    return "No measurement yet."
  hardware = "; ".join(sorted({r["hardware"] for r in records}))
  commits = ", ".join(sorted({r["commit"] for r in records}))
  real = any(r["kind"] == "step" for r in records)
  shared = any(r.get("shared_prompts") for r in records)
  lines += [
    "",
    f"Random weights{', but for step' if real else ''}. Decoding: all answers "
    "of full length; useful slots with lengths that vary (lognormal). "
    f"{peaks.NOTE}.{_SHARED if shared else ''} "
    f"Hardware: {hardware}. Commit: {commits}.",
  ]
  return "\n".join(lines)


def main(argv: Sequence[str]) -> int:
  """Prints or writes the table."""
  parser = argparse.ArgumentParser(
    prog="python -m experiments.bench table", description=__doc__
  )
  parser.add_argument("--results", type=pathlib.Path, default=RESULTS)
  parser.add_argument("--write", type=pathlib.Path, default=None)
  arguments = parser.parse_args(argv)
  try:
    table = markdown(load(arguments.results))
    if arguments.write is None:
      print(table)
    else:
      tables.write(arguments.write, table, BEGIN, END)
  except (tables.TableError, OSError) as error:
    print(f"experiments.bench: {error}", file=sys.stderr)
    return 2
  return 0
