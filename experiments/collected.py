"""The results of a finished run, as they are committed.

RESULTS/ROW/seedN/results.json
                  forked_from.json (of a run that has one)
                  metrics.jsonl.gz heldout.jsonl.gz problems.jsonl.gz
"""

import gzip
import json
import pathlib
from typing import Any

from experiments import workdir
from experiments.config_file import UsageError
from leap_jax import files

_LINES = ("metrics.jsonl", "heldout.jsonl", "problems.jsonl")


def collect(run_folder: pathlib.Path, target: pathlib.Path) -> None:
  """Copies what tables need of a run, compressed; results.json last.

  The same run gives the same bytes. Whoever is stopped meanwhile leaves no
  results.json, and so no run: an older one never stands beside newer lines.

  Raises:
    UsageError: the run's folder lacks a file; what was there is untouched.
    OSError: `target` may be without results.json; to be collected again.
  """
  contents = {}
  for name in (*_LINES, "results.json"):
    try:
      raw = (run_folder / name).read_bytes()
    except FileNotFoundError:
      raise UsageError(
        f"{run_folder} has no {name}: its run is of another version; move that "
        "folder away and start the sweep again"
      ) from None
    is_lines = name in _LINES
    contents[f"{name}.gz" if is_lines else name] = (
      gzip.compress(raw, 9, mtime=0) if is_lines else raw
    )
  if (run_folder / workdir.FORKED_FROM).exists():
    path = run_folder / workdir.FORKED_FROM
    contents[workdir.FORKED_FROM] = path.read_bytes()
  target.mkdir(parents=True, exist_ok=True)
  for name in ("results.json", workdir.FORKED_FROM):
    (target / name).unlink(missing_ok=True)
  files.write_whole(target, contents)


def difference(
  result: dict[str, Any], wanted: dict[str, Any]
) -> tuple[str, Any, Any] | None:
  """The first setting of a finished run that is not as wanted.

  Settings that may change when a run goes on do not count.

  Args:
    result: of results.json.
    wanted: flat settings.

  Returns:
    (name, value of the run, value that is wanted), or None.
  """
  # Through JSON, so that tuples compare equal to what is read back.
  wanted = workdir.as_now(json.loads(json.dumps(wanted)))
  got = workdir.as_now(result["config"])
  for key in sorted(set(got) | set(wanted)):
    if key not in workdir.MAY_CHANGE and got.get(key) != wanted.get(key):
      return key, got.get(key), wanted.get(key)
  return None


def read_lines(path: pathlib.Path) -> list[dict[str, Any]]:
  """The lines of a `.jsonl.gz`."""
  with gzip.open(path, "rt", encoding="utf-8") as file:
    return [json.loads(line) for line in file]
