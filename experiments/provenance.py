"""Where numbers come from: the commit and the hardware of every part of a run.

A run may stop and go on with another commit or on another machine. Its record
then has a part for each: {"commit", "hardware", "from_step"}, where a step is
one of the warm start or an iteration. Whoever shows numbers of several runs
shows all of it, and mixes nothing silently.
"""

import os
import pathlib
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

KEYS = ("commit", "hardware")

_UNKNOWN = "unknown"
_CHANGED = "+changes"


def commit() -> str:
  """The commit of this code, with a mark if files have changed since."""
  root = pathlib.Path(__file__).parents[1]

  def git(*arguments):
    return subprocess.run(
      ["git", "-C", str(root), *arguments],
      capture_output=True,
      text=True,
      check=True,
    ).stdout.strip()

  try:
    mark = _CHANGED if git("status", "--porcelain", "-uno") else ""
    return git("rev-parse", "--short=12", "HEAD") + mark
  except (OSError, subprocess.CalledProcessError):
    return _UNKNOWN


def hardware() -> str:
  """Processor and accelerator, for the record. Loads JAX."""
  import jax

  model = "processor"
  try:
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
      if line.startswith("model name"):
        model = line.split(":", 1)[1].strip()
        break
  except OSError:
    pass
  cores = len(os.sched_getaffinity(0))
  devices = jax.devices()
  text = f"{cores} x {model}"
  if devices[0].platform != "cpu":
    text += f", {len(devices)} x {devices[0].device_kind}"
  return text


def continued(
  parts: Sequence[Mapping[str, Any]], step: int
) -> list[dict[str, Any]]:
  """The parts of a run that goes on here.

  Args:
    parts: so far; of a run that has not begun, none.
    step: from which on.
  """
  known = [dict(part) for part in parts]
  if not known and step:  # of a version that did not record them
    known = [dict.fromkeys(KEYS, _UNKNOWN) | {"from_step": 0}]
  here = {"commit": commit(), "hardware": hardware()}
  if known and all(known[-1][key] == here[key] for key in KEYS):
    return known
  return [*known, here | {"from_step": step}]


def of(results: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
  """All commits and hardware of some runs (results.json), sorted."""
  runs = [result["run"] for result in results]
  return {
    key: sorted({part[key] for run in runs for part in _parts(run)})
    for key in KEYS
  }


def _parts(run):
  return run.get("parts") or [run]


def clash(results: Mapping[pathlib.Path, Mapping[str, Any]]) -> str | None:
  """Why the numbers of some runs are not of one origin, or None if they are.

  Files that have changed since a commit, and a commit that is not known, are
  the same as no other, not even as another one of that name.

  Args:
    results: results.json of each run, by its path.
  """
  first: dict[str, tuple[str, pathlib.Path]] = {}
  for path, result in results.items():
    for key, values in of([result]).items():
      if len(values) > 1:
        return f"{path} has parts of {key} {' and '.join(values)}"
      (value,) = values
      other, other_path = first.setdefault(key, (value, path))
      if value != other:
        return f"{other_path} is of {key} {other}, {path} of {value}"
      if path != other_path and not is_sure(value):
        return f"{other_path} and {path} are both of {key} {value}"
  return None


def is_sure(value: str) -> bool:
  """Whether a commit names one state of the code."""
  return value != _UNKNOWN and not value.endswith(_CHANGED)


def mixtures(results: Sequence[Mapping[str, Any]]) -> list[str]:
  """What to say below numbers of several origins; [] if there is one."""
  said = [
    f"MIXED: runs of {len(values)} kinds of {key} are averaged."
    for key, values in of(results).items()
    if len(values) > 1
  ]
  if len(results) > 1 and not said:
    said = [
      f"MIXED: runs of {key} {value}, which names no one state, are averaged."
      for key, values in of(results).items()
      for value in values
      if not is_sure(value)
    ]
  return said
