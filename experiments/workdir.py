"""What a run leaves behind.

config.json            every setting
forked_from.json       of a run that goes on from another one's cold start: the
                       content of that checkpoint, its commit and hardware
.lock                  held by the process that is working here
metrics.jsonl          one line a step (leap_jax/metrics.py declares them)
tensorboard/           the same for TensorBoard
checkpoints/           to go on from
trajectories/          every conversation, one compressed file a rollout: of
                       each iteration, its refills, each evaluation
heldout.jsonl          one line a held-out evaluation: what training had used by
                       then, and by problem how many samples came to what
problems.jsonl         one line a training problem: visits, failures, open gates
policy/                the trained policy
results.json           the outcome
learning_curve.png     the picture of it
stderr.txt             progress and errors, where a sweep ran it on a cluster
"""

import contextlib
import fcntl
import gzip
import json
import os
import pathlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from experiments.config_file import Occupied, UsageError
from leap_jax.types import Trajectory

# Settings that may change when a run goes on: they do not touch what has been
# computed so far.
MAY_CHANGE = (
  "harness.backend",
  "harness.devices",
  "harness.num_workers",
  "warm_start.checkpoint_every",
  "harness.ray_address",
  "run.num_iterations",
  "run.max_training_s",
  "run.checkpoint_every",
  "run.keep_checkpoints",
  "run.save_trajectories",
)

# Settings that recorded runs may not know yet, and what those did; and what
# they name that is no setting any more.
_YOUNGER = {
  "harness.sanitizer": False,
  "learner.denominator": "with_advantage",
  "eval.growth": 0.0,
}
_GONE = ("harness.device",)  # harness.devices, which may change

FORKED_FROM = "forked_from.json"


def as_now(settings: dict[str, Any]) -> dict[str, Any]:
  """Flat settings of a recorded run in the names of today."""
  kept = {key: x for key, x in settings.items() if key not in _GONE}
  return {**_YOUNGER, **kept}


def write_json(path: pathlib.Path, value: Any) -> None:
  """Writes a file that is whole or not there."""
  temporary = path.with_name(path.name + ".tmp")
  temporary.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")
  os.replace(temporary, path)


def write_lines(path: pathlib.Path, records: Iterable[Any]) -> None:
  """Writes JSON lines; the file is whole or not there."""
  temporary = path.with_name(path.name + ".tmp")
  temporary.write_text("".join(json.dumps(r) + "\n" for r in records))
  os.replace(temporary, path)


def _read_json(path):
  """What a file holds, or None if there is none."""
  try:
    return json.loads(path.read_text()) if path.exists() else None
  except OSError as error:
    raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
  except ValueError:
    raise UsageError(
      f"{path} is not readable as JSON; use another --workdir"
    ) from None


@contextlib.contextmanager
def held(workdir: pathlib.Path, option: str = "--workdir") -> Iterator[None]:
  """Makes the folder and keeps others out of it.

  The lock goes with the process, however that ends.

  Args:
    workdir: the folder.
    option: the flag that names another one, for the message.

  Raises:
    Occupied: another process holds it.
    UsageError: the folder is not writable.
  """
  try:
    workdir.mkdir(parents=True, exist_ok=True)
    file = open(workdir / ".lock", "a+", encoding="utf-8")
  except OSError as error:
    raise UsageError(
      f"cannot use {workdir}: {error.strerror or error}"
    ) from None
  with file:
    try:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      file.seek(0)
      raise Occupied(
        f"process {file.read().strip() or '?'} is working in {workdir}; wait "
        f"for it, or use another {option}"
      ) from None
    except OSError as error:
      raise UsageError(
        f"cannot lock {workdir}: {error.strerror or error}"
      ) from None
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    yield


@contextlib.contextmanager
def scratch() -> Iterator[pathlib.Path]:
  """A folder that is removed afterwards."""
  with tempfile.TemporaryDirectory() as folder:
    yield pathlib.Path(folder)


def check(workdir: pathlib.Path, settings: dict[str, Any]) -> None:
  """Checks that a folder is new or of the same configuration.

  Raises:
    UsageError: another configuration.
  """
  before = _read_json(workdir / "config.json")
  if before is None:
    return
  # Through JSON, so that tuples compare equal to what is read back.
  before, settings = as_now(before), as_now(json.loads(json.dumps(settings)))
  for key in sorted(set(before) | set(settings)):
    old, new = before.get(key), settings.get(key)
    if old != new and key not in MAY_CHANGE:
      raise UsageError(
        f"{workdir} holds a run with config.{key}={old}, now it is {new}; use "
        "another --workdir, or the old setting"
      )


def settings_of(workdir: pathlib.Path) -> dict[str, Any]:
  """The settings of the run that has worked in a folder.

  Raises:
    UsageError: there was none.
  """
  settings = _read_json(workdir / "config.json")
  if settings is None:
    raise UsageError(f"{workdir} is no work folder: it has no config.json")
  return as_now(settings)


def record(workdir: pathlib.Path, settings: dict[str, Any]) -> None:
  """Writes config.json: what the run does from now on.

  Raises:
    UsageError: not writable.
  """
  try:
    write_json(workdir / "config.json", settings)
  except OSError as error:
    raise UsageError(
      f"cannot use {workdir}: {error.strerror or error}"
    ) from None


def outcome(workdir: pathlib.Path) -> dict[str, Any] | None:
  """results.json of a run that came to its end, or None.

  Raises:
    UsageError: it is damaged.
  """
  return _read_json(workdir / "results.json")


def origin(workdir: pathlib.Path) -> dict[str, Any] | None:
  """forked_from.json of a run that goes on from another one's, or None.

  Raises:
    UsageError: it is damaged.
  """
  return _read_json(workdir / FORKED_FROM)


def last_checkpoint(workdir: pathlib.Path) -> str:
  """Words on what a run that failed can go on from."""
  # Checkpoints that are still being written have longer names.
  paths = (workdir / "checkpoints").glob("[0-9]*")
  steps = [int(path.name) for path in paths if path.name.isdigit()]
  if not steps:
    return "there is no checkpoint yet"
  return f"the last checkpoint is of step {max(steps)}"


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
