"""Several processes, on one host or many, that run the same program.

Every process makes the same decisions from the same numbers; arrays of the
device mesh span all processes, and what the host reads of them is on every
device. What is each process's own is exchanged before anything is decided by
it: clocks and files are the first one's (`from_first`), memory is the least of
all (`from_all`). Each process has a share of the candidates judged, and all of
them get all verdicts, or the same fault. The first process alone writes files.
How all end when one fails: leap_jax/joint_end.py.
"""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import msgspec
import numpy as np
from jax.experimental import multihost_utils

from kernels_eval.client import HarnessError
from kernels_eval.schema import Evaluation, Request

_LEAST_MESSAGE_BYTES = 1024  # shorter ones are filled up


class Unlike(Exception):
  """Processes do not go together; one line says how."""


class Unreachable(Exception):
  """Processes do not find each other; one line says why."""


def connect(
  coordinator: str, num_processes: int, process_id: int, wait_s: float = 300.0
) -> None:
  """Joins the others. Before anything else that JAX does.

  Args:
    coordinator: host:port of the first process.
    num_processes: of the program.
    process_id: of this one, from 0.
    wait_s: for the first process; that one waits as long for the others.

  Raises:
    Unlike: they have other devices or other libraries.
    Unreachable: the first process does not answer, or cannot listen.
  """
  if process_id > 0:
    _wait_for_first(coordinator, wait_s)
  try:
    jax.distributed.initialize(
      coordinator_address=coordinator,
      num_processes=num_processes,
      process_id=process_id,
      initialization_timeout=int(wait_s),
    )
  except jax.errors.JaxRuntimeError as error:
    raise Unreachable(
      f"cannot join the processes at {coordinator}: "
      f"{str(error).splitlines()[0]}"
    ) from None
  device = jax.local_devices()[0]
  runtime = " ".join(device.client.platform_version.split())
  check_alike(
    {
      "devices": f"{jax.local_device_count()} x {device.device_kind}",
      "jax": jax.__version__,
      "runtime": runtime,
    }
  )


def _wait_for_first(coordinator, wait_s):
  """JAX itself would end the program with a trace of C++."""
  host, _, port = coordinator.rpartition(":")
  deadline = time.monotonic() + wait_s
  while True:
    try:
      socket.create_connection((host.strip("[]"), int(port)), 5.0).close()
      return
    except OSError as error:
      if time.monotonic() >= deadline:
        raise Unreachable(
          f"no process 0 at {coordinator} after {wait_s:.0f} s "
          f"({error.strerror or error}); start it there, or mend --coordinator"
        ) from None
    time.sleep(0.5)


def check_alike(about: Mapping[str, Any]) -> None:
  """Refuses processes that would run different programs.

  What suits a device (an implementation of attention, a way to compute the
  update) is found out by each process for itself.

  Args:
    about: what the programs depend on, by name. All processes call this.

  Raises:
    Unlike: not the same everywhere; in all processes, with the first name that
      differs.
  """
  first, *others = from_all(dict(about))
  for process, other in enumerate(others, 1):
    for name in sorted(first.keys() | other.keys()):
      if first.get(name) != other.get(name):
        raise Unlike(
          f"process 0 has {name}={first.get(name)}, process {process} has "
          f"{name}={other.get(name)}; a run needs the same in all of its "
          "processes"
        )


def is_first() -> bool:
  """Whether this is the process that writes."""
  return jax.process_index() == 0


def to_host(tree: Any) -> Any:
  """NumPy arrays of all of it, wherever it lies. All processes call this."""

  def own(leaf):
    """What this process holds, if that is all of it."""
    if not isinstance(leaf, jax.Array) or leaf.is_fully_addressable:
      return leaf
    if leaf.is_fully_replicated:
      return leaf.addressable_data(0)
    return multihost_utils.process_allgather(leaf, tiled=True)

  # Together: all copies begin before one is awaited.
  return jax.tree.map(np.asarray, jax.device_get(jax.tree.map(own, tree)))


def exchange(message: bytes) -> list[bytes]:
  """Everybody's message, in the order of the processes."""
  lengths = multihost_utils.process_allgather(np.asarray([len(message)]))
  lengths = np.asarray(lengths).reshape(-1)
  # Gathering is compiled for each shape: there are few powers of two.
  longest = max(int(lengths.max()), _LEAST_MESSAGE_BYTES)
  padded = np.zeros(1 << (longest - 1).bit_length(), np.uint8)
  padded[: len(message)] = np.frombuffer(message, np.uint8)
  rows = np.asarray(multihost_utils.process_allgather(padded))
  rows = rows.reshape(len(lengths), -1)
  return [
    row[:length].tobytes() for row, length in zip(rows, lengths, strict=True)
  ]


def from_all(value: Any) -> list[Any]:
  """Everybody's value, in the order of the processes. All processes call this.

  Args:
    value: what msgpack can hold; a float arrives with all its bits.
  """
  if jax.process_count() == 1:
    return [value]
  return [
    msgspec.msgpack.decode(part)
    for part in exchange(msgspec.msgpack.encode(value))
  ]


def from_first(value: Any) -> Any:
  """The first process's value, in all of them. All processes call this."""
  return from_all(value)[0]


def wait_for_all() -> None:
  """Returns when every process has called this."""
  from_first(None)


def _raise_same(faults):
  """The first fault of any process, in all of them in the same words."""
  for process, fault in enumerate(faults):
    if fault is not None:
      raise HarnessError(f"process {process}: {fault}")


class _Part(msgspec.Struct):
  """What a process says of its share."""

  verdicts: list[Evaluation]
  fault: str | None
  num_evaluated: int
  num_restarts: int


class SharedPool:
  """The judges of all processes: each has its own judge a share."""

  def __init__(self, pool: Any):
    """Args: pool: this process's judges (kernels_eval.batches.Judges)."""
    self._pool = pool
    # Of all processes, as of the last verdicts.
    self.num_evaluated = 0  # different texts given to a judge, by process
    self.num_restarts = 0  # judges that were replaced

  @property
  def description(self) -> str:
    """One line about the judges of this process."""
    return self._pool.description

  def evaluate(
    self,
    requests: Sequence[Request],
    on_result: Callable[[Evaluation], None] | None = None,
  ) -> list[Evaluation]:
    """All verdicts, in every process. All processes call this alike.

    Args:
      requests: the same in every process.
      on_result: called with each answer of this process's share.

    Raises:
      HarnessError: the judges of a process failed; in all processes.
    """
    mine = requests[jax.process_index() :: jax.process_count()]
    verdicts, fault = [], None
    try:
      if mine:
        verdicts = self._pool.evaluate(mine, on_result)
    except HarnessError as error:  # the others wait for what is said here
      fault = str(error)
    part = _Part(
      verdicts, fault, self._pool.num_evaluated, self._pool.num_restarts
    )
    parts = [
      msgspec.msgpack.decode(part, type=_Part)
      for part in exchange(msgspec.msgpack.encode(part))
    ]
    _raise_same([part.fault for part in parts])
    self.num_evaluated = sum(part.num_evaluated for part in parts)
    self.num_restarts = sum(part.num_restarts for part in parts)
    shares = [part.verdicts for part in parts]
    return [
      shares[i % len(shares)][i // len(shares)] for i in range(len(requests))
    ]


@contextlib.contextmanager
def judges(make: Callable[[], Any]) -> Iterator[Any]:
  """The judges of all processes, closed at the end.

  Args:
    make: this process's judges, a context manager.

  Raises:
    HarnessError: a process has none, or they do not judge alike; in all
      processes.
  """
  if jax.process_count() == 1:
    with make() as pool:
      yield pool
    return
  with contextlib.ExitStack() as stack:
    pool, fault = None, None
    try:
      pool = stack.enter_context(make())
    except HarnessError as error:
      fault = str(error)
    _raise_same(from_all(fault))
    _check_same_judges(from_all(pool.executor_name))
    yield SharedPool(pool)


def _check_same_judges(executors):
  """Half of the verdicts must not be of another kind of judge."""
  for process, executor in enumerate(executors):
    if executor != executors[0]:
      raise HarnessError(
        f"process 0 judges by {executors[0]}, process {process} by {executor}; "
        "set config.harness.executor to one that all hosts have"
      )
