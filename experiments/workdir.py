"""What a run leaves behind.

config.json            every setting
metrics.jsonl          one line a step (leap_jax/metrics.py declares them)
tensorboard/           the same for TensorBoard
checkpoints/           to go on from
trajectories/          every conversation, one compressed file an iteration
policy/                the trained policy
results.json           the outcome
learning_curve.png     the picture of it
"""

import gzip
import json
import os
import pathlib
import subprocess
from collections.abc import Sequence
from typing import Any

import msgspec

from experiments.settings import UsageError
from leap_jax.types import Trajectory

# Settings that may change when a run goes on: they do not touch what has been
# computed so far.
MAY_CHANGE = (
  "harness.backend",
  "harness.num_workers",
  "harness.ray_address",
  "run.num_iterations",
  "run.checkpoint_every",
  "run.keep_checkpoints",
  "run.save_trajectories",
)


def write_json(path: pathlib.Path, value: Any) -> None:
  """Writes a file that is whole or not there."""
  temporary = path.with_name(path.name + ".tmp")
  temporary.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")
  os.replace(temporary, path)


def prepare(workdir: pathlib.Path, settings: dict[str, Any]) -> bool:
  """Makes the folder, or checks that it is of the same configuration.

  Returns:
    Whether a run has been here before.

  Raises:
    UsageError: another configuration, or not writable.
  """
  # Through JSON, so that tuples compare equal to what is read back.
  settings = json.loads(json.dumps(settings))
  path = workdir / "config.json"
  try:
    workdir.mkdir(parents=True, exist_ok=True)
    if not path.exists():
      write_json(path, settings)
      return False
    before = json.loads(path.read_text())
  except OSError as error:
    raise UsageError(
      f"cannot use {workdir}: {error.strerror or error}"
    ) from None
  except ValueError:
    raise UsageError(
      f"{path} is not readable as JSON; use another --workdir"
    ) from None
  for key in sorted(set(before) | set(settings)):
    old, new = before.get(key), settings.get(key)
    if old != new and key not in MAY_CHANGE:
      raise UsageError(
        f"{workdir} holds a run with config.{key}={old}, now it is {new}; use "
        "another --workdir, or the old setting"
      )
  write_json(path, settings)
  return True


def save_trajectories(
  workdir: pathlib.Path, name: str, trajectories: Sequence[Trajectory]
) -> None:
  """Writes conversations as compressed JSON lines."""
  folder = workdir / "trajectories"
  folder.mkdir(exist_ok=True)
  temporary = folder / f".{name}.tmp"
  with gzip.open(temporary, "wb", compresslevel=4) as file:
    for trajectory in trajectories:
      file.write(msgspec.json.encode(trajectory) + b"\n")
  os.replace(temporary, folder / f"{name}.jsonl.gz")


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
    mark = "+changes" if git("status", "--porcelain", "-uno") else ""
    return git("rev-parse", "--short=12", "HEAD") + mark
  except (OSError, subprocess.CalledProcessError):
    return "unknown"


def hardware() -> str:
  """Processor and accelerator, for the record."""
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
