"""Checkpoints: everything that a run needs to go on as if nothing had happened.

Arrays (parameters, optimizer, buffer) and a JSON record (position, totals) are
saved together by orbax, which makes a checkpoint appear at once or not at all.
A digest of all bytes tells a damaged one from a good one. Saving is
synchronous: a full disk is an error now, not a surprise at resume.
"""

import hashlib
import logging
import pathlib
import re
import shutil
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from leap_jax import hosts

_DIGEST = "digest"


class CheckpointError(Exception):
  """Saving failed, or nothing usable is there; one line says why."""


def digest(tree: Any) -> str:
  """SHA-256 over every leaf's path, dtype, shape and bytes."""
  total = hashlib.sha256()
  for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
    array = hosts.to_host(leaf)
    total.update(
      f"{jax.tree_util.keystr(path)}{array.dtype}{array.shape}".encode()
    )
    total.update(np.ascontiguousarray(array).tobytes())
  return total.hexdigest()


class Checkpoints:
  """The checkpoints of one run. Owns orbax's manager; close it."""

  def __init__(self, folder: pathlib.Path, keep: int = 3):
    """Opens or creates the folder.

    Args:
      folder: of the checkpoints.
      keep: how many of the newest stay; at least 2, so that a damaged one has
        a predecessor.

    Raises:
      CheckpointError: the folder cannot be written to.
    """
    if keep < 2:
      raise ValueError(f"keep={keep}; at least 2")
    # orbax logs every step it takes at INFO.
    logging.getLogger("absl").setLevel(logging.WARNING)
    self._folder = folder
    try:
      folder.mkdir(parents=True, exist_ok=True)
      probe = folder / f".writable{jax.process_index()}"
      probe.write_bytes(b"")
      probe.unlink()
      self._manager = ocp.CheckpointManager(
        folder.absolute(),
        options=ocp.CheckpointManagerOptions(
          max_to_keep=keep,
          enable_async_checkpointing=False,
          create=True,
          cleanup_tmp_directories=True,
        ),
      )
    except OSError as error:
      raise CheckpointError(
        f"cannot write checkpoints to {folder}: {error.strerror or error}"
      ) from None

  def save(self, step: int, state: Any, record: dict) -> None:
    """Saves; returns when it is on disk.

    Args:
      step: larger than that of any checkpoint so far.
      state: a tree of arrays.
      record: JSON values.

    Raises:
      CheckpointError: with path and reason. Earlier checkpoints stay.
    """
    record = {**record, _DIGEST: digest(state)}
    try:
      self._manager.save(
        step,
        args=ocp.args.Composite(
          state=ocp.args.StandardSave(state),
          record=ocp.args.JsonSave(record),
        ),
        force=True,
      )
      self._manager.wait_until_finished()
    except Exception as error:  # orbax wraps I/O errors in many types
      self._remove_remains(step)
      raise CheckpointError(
        f"cannot save checkpoint {step} to {self._folder}: {_reason(error)}"
      ) from error

  def _remove_remains(self, step):
    for path in self._folder.glob(f"{step}*"):
      shutil.rmtree(path, ignore_errors=True)

  def steps(self) -> list[int]:
    """Steps of complete checkpoints, ascending."""
    return sorted(self._manager.all_steps())

  def restore_latest(self, abstract: Any) -> tuple[int, Any, dict] | None:
    """The newest checkpoint that is whole; damaged ones are passed over.

    Args:
      abstract: tree of `jax.ShapeDtypeStruct` with the shardings to restore
        into, which need not be those of the save.

    Returns:
      (step, state, record), or None if there is no checkpoint at all.

    Raises:
      CheckpointError: there are checkpoints, and none is usable.
    """
    steps = self.steps()
    reasons = []
    for step in reversed(steps):
      try:
        restored = self._manager.restore(
          step,
          args=ocp.args.Composite(
            state=ocp.args.StandardRestore(abstract),
            record=ocp.args.JsonRestore(),
          ),
        )
        state, record = restored["state"], dict(restored["record"])
        if digest(state) != record.pop(_DIGEST, None):
          raise ValueError("its bytes are not those that were saved")
      except Exception as error:  # a damaged file fails in many ways
        reasons.append(f"checkpoint {step}: {_reason(error)}")
        logging.getLogger(__name__).warning(
          "damaged %s; the one before it is used", reasons[-1]
        )
        continue
      for later in steps:
        if later > step:
          # It would stand in the way of a new checkpoint of its number.
          self._manager.delete(later)
      return step, state, record
    if steps:
      raise CheckpointError(
        f"no usable checkpoint in {self._folder}: {'; '.join(reasons)}"
      )
    return None

  def close(self) -> None:
    """Waits for what is being written and lets go."""
    self._manager.close()


def _reason(error):
  """The innermost cause, in one line."""
  while error.__cause__ is not None:
    error = error.__cause__
  text = " ".join(str(error).split())
  # tensorstore wraps the system's error in a long list of paths.
  system = re.search(r"([^:\[]*) \[os_error_code='(\d+)'", text)
  if system:
    return f"{system[1].strip()} (errno {system[2]})"
  return f"{type(error).__name__}: {text[:300]}"
