"""Several processes, on one host or many, that run the same program.

Every process makes the same decisions from the same numbers; arrays of the
device mesh span all processes, and what the host reads of them is on every
device. Only verdicts come from outside of the program: each process has a share
of the candidates judged, and all of them get all verdicts. The first process
alone writes files.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import msgspec
import numpy as np
from jax.experimental import multihost_utils

from kernels_eval.schema import Evaluation, Request


def connect(coordinator: str, num_processes: int, process_id: int) -> None:
  """Joins the others. Before anything else that JAX does.

  Args:
    coordinator: host:port of the first process.
    num_processes: of the program.
    process_id: of this one, from 0.
  """
  jax.distributed.initialize(
    coordinator_address=coordinator,
    num_processes=num_processes,
    process_id=process_id,
  )


def is_first() -> bool:
  """Whether this is the process that writes."""
  return jax.process_index() == 0


def to_host(tree: Any) -> Any:
  """NumPy arrays of all of it, wherever it lies. All processes call this."""

  def whole(leaf):
    if not isinstance(leaf, jax.Array) or leaf.is_fully_addressable:
      return np.asarray(jax.device_get(leaf))
    if leaf.is_fully_replicated:
      return np.asarray(leaf.addressable_data(0))
    return np.asarray(multihost_utils.process_allgather(leaf, tiled=True))

  return jax.tree.map(whole, tree)


def exchange(message: bytes) -> list[bytes]:
  """Everybody's message, in the order of the processes."""
  lengths = multihost_utils.process_allgather(np.asarray([len(message)]))
  lengths = np.asarray(lengths).reshape(-1)
  padded = np.zeros(int(lengths.max()), np.uint8)
  padded[: len(message)] = np.frombuffer(message, np.uint8)
  rows = np.asarray(multihost_utils.process_allgather(padded))
  rows = rows.reshape(len(lengths), -1)
  return [
    row[:length].tobytes() for row, length in zip(rows, lengths, strict=True)
  ]


class SharedPool:
  """The judges of all processes: each has its own judge a share."""

  def __init__(self, pool: Any):
    """Args: pool: this process's judges (kernels_eval.batches.Judges)."""
    self._pool = pool

  @property
  def num_evaluated(self) -> int:
    """Different texts given to a judge of this process."""
    return self._pool.num_evaluated

  @property
  def num_restarts(self) -> int:
    """Judges of this process that were replaced."""
    return self._pool.num_restarts

  def evaluate(
    self,
    requests: Sequence[Request],
    on_result: Callable[[Evaluation], None] | None = None,
  ) -> list[Evaluation]:
    """All verdicts, in every process. All processes call this alike.

    Args:
      requests: the same in every process.
      on_result: called with each answer of this process's share.
    """
    mine = requests[jax.process_index() :: jax.process_count()]
    verdicts = self._pool.evaluate(mine, on_result) if mine else []
    parts = [
      msgspec.msgpack.decode(part, type=list[Evaluation])
      for part in exchange(msgspec.msgpack.encode(verdicts))
    ]
    return [
      parts[i % len(parts)][i // len(parts)] for i in range(len(requests))
    ]
