"""The connection to a Ray cluster, or to one that is started on this machine.

The only module that imports Ray, and only when a connection is opened.
"""

import concurrent.futures
import dataclasses
import functools
import importlib
import os
import pathlib
import queue
import secrets
import shutil
import socket
import threading
from typing import Any

from kernels_eval import client, temporary

_CONNECT_S = 5.0
_ANSWER_S = 20.0  # of the first node, for the list of machines
_STORE_BYTES = 80 * 2**20  # Ray's least; verdicts are small
_MESSAGE_CHARACTERS = 160
_PACKAGE = "leap-jax[ray]"


@dataclasses.dataclass(frozen=True)
class Machine:
  """A machine of the cluster, and what Ray may give away of it."""

  id: str  # Ray's; another one after each start of Ray there
  host: str
  num_cpus: float
  num_gpus: float


def import_ray() -> Any:
  """The module.

  Raises:
    HarnessError: it is not installed.
  """
  try:
    return importlib.import_module("ray")
  except ImportError as error:
    raise client.HarnessError(
      f"the ray backend needs Ray ({error}): pip install '{_PACKAGE}'"
    ) from None


def first_line(error: BaseException) -> str:
  """How an error begins, cut; Ray's have many lines."""
  lines = [line.strip() for line in str(error).splitlines() if line.strip()]
  return (lines[0] if lines else type(error).__name__)[:_MESSAGE_CHARACTERS]


def last_line(error: BaseException) -> str:
  """How an error ends, cut: behind a traceback, what went wrong."""
  lines = [line.strip() for line in str(error).splitlines() if line.strip()]
  return (lines[-1] if lines else type(error).__name__)[:_MESSAGE_CHARACTERS]


@functools.cache
def _token():
  """The secret of this process's clusters; Ray reads it once a process."""
  return secrets.token_hex(32)


def _check_that_it_listens(address):
  """Ray itself would try for minutes."""
  host, _, port = address.rpartition(":")
  if not host or "/" in host or not port.isdigit():
    raise client.HarnessError(
      f"the Ray address {address} is not of the form host:port; this machine "
      "must be part of the cluster (ray start --address=host:port)"
    )
  try:
    socket.create_connection((host, int(port)), _CONNECT_S).close()
  except (OSError, OverflowError) as error:
    raise client.HarnessError(
      f"no Ray cluster at {address} ({error}); one is started by "
      "`ray start --head`, which prints its address"
    ) from None


class Connection:
  """Owns this process's connection, and the cluster if it started one."""

  def __init__(self, address: str | None, num_cpus: int):
    """Connects.

    Args:
      address: host:port of a cluster that this machine is part of; None starts
        one of this machine alone, which ends with the connection.
      num_cpus: judges of such a cluster.

    Raises:
      HarnessError: Ray is not installed, or there is no such cluster.
    """
    if address is not None:
      _check_that_it_listens(address)
    self.ray = import_ray()
    if self.ray.is_initialized():
      raise client.HarnessError(
        "this process has a connection to Ray already, and can have one only"
      )
    self._environment: dict[str, str | None] = {}
    self._root: pathlib.Path | None = None
    self._answers: queue.SimpleQueue[
      tuple[Any, concurrent.futures.Future[bytes]]
    ] = queue.SimpleQueue()
    self._is_answering = True
    self._set("RAY_USAGE_STATS_ENABLED", "0")
    self.address = address or "started here"
    try:
      if address is None:
        self._start(num_cpus)
      else:
        self.ray.init(address, log_to_driver=False, logging_level="ERROR")
      self._here = self.ray.get_runtime_context().get_node_id()
    except (self.ray.exceptions.RayError, OSError, RuntimeError) as error:
      self.close()
      where = f"to {address}" if address else "to one started here"
      raise client.HarnessError(
        f"no connection to Ray {where}: {first_line(error)}"
      ) from None
    except BaseException:
      self.close()
      raise

  def _set(self, name, value):
    self._environment[name] = os.environ.get(name)
    os.environ[name] = value

  def _start(self, num_cpus):
    # The name is that of a pool's folder: what a killed process leaves is
    # removed by the next one. Short, since sockets lie in it.
    self._root = temporary.make_root()
    if not any(name.startswith("RAY_AUTH_") for name in os.environ):
      # Ray switches its token on, and would write it to the home folder.
      token = self._root / "token"
      token.touch(0o600)
      token.write_text(_token())
      self._environment["RAY_AUTH_MODE"] = None
      self._set("RAY_AUTH_TOKEN_PATH", str(token))
    self.ray.init(
      "local",
      num_cpus=num_cpus,
      object_store_memory=_STORE_BYTES,
      include_dashboard=False,
      log_to_driver=False,
      logging_level="ERROR",
      _temp_dir=str(self._root),
    )

  @property
  def is_open(self) -> bool:
    """Whether messages can be sent."""
    return self._is_answering and self.ray.is_initialized()

  def machines(self) -> list[Machine]:
    """The machines that work at the moment and have processors to give.

    Raises:
      HarnessError: the cluster does not answer, or this machine has left it.
    """
    nodes = self._ask(self.ray.nodes)
    nodes = [node for node in nodes if node["Alive"]]
    if all(node["NodeID"] != self._here for node in nodes):
      raise client.HarnessError(
        "this machine is no longer part of the Ray cluster: Ray's process here "
        "has ended"
      )
    return [
      Machine(
        node["NodeID"],
        node["NodeManagerHostname"],
        node["Resources"]["CPU"],
        node["Resources"].get("GPU", 0.0),
      )
      for node in nodes
      if node["Resources"].get("CPU", 0.0) > 0
    ]

  def _ask(self, question):
    """What a function of Ray's gives that asks the cluster's first node. It has
    no deadline of its own, and after a minute Ray ends this process."""
    answer = queue.SimpleQueue()

    def ask():
      try:
        answer.put((question(), None))
      except (self.ray.exceptions.RayError, RuntimeError) as error:
        answer.put((None, first_line(error)))

    threading.Thread(target=ask, daemon=True).start()
    try:
      value, reason = answer.get(timeout=_ANSWER_S)
    except queue.Empty:
      value, reason = None, f"no answer within {_ANSWER_S:g} s"
    if reason is not None:
      self._is_answering = False
      raise client.HarnessError(f"the Ray cluster does not answer: {reason}")
    return value

  def start_agent(
    self, kind: type, machine: Machine, num_judges: int, num_gpus: int
  ) -> Any:
    """Begins to start an actor of a class there, with as many GPUs or what the
    machine has; returns its handle at once."""
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    there = strategies.NodeAffinitySchedulingStrategy(machine.id, soft=False)
    return (
      self.ray.remote(kind)
      .options(
        num_cpus=min(num_judges, machine.num_cpus),
        num_gpus=min(num_gpus, machine.num_gpus),
        scheduling_strategy=there,
      )
      .remote()
    )

  def kill(self, agent: Any) -> None:
    """Ends an actor, whatever it does at the moment."""
    try:
      self.ray.kill(agent)
    except (self.ray.exceptions.RayError, ValueError):
      pass  # it is gone

  def send(self, method: Any, *frames: bytes) -> Any:
    """Calls a method of an actor; returns Ray's reference of the answer."""
    reference = method.remote(*frames)
    # Not ray.wait and ray.get: they know no deadline when Ray's own process on
    # this machine is gone.
    reference.future().add_done_callback(
      lambda future: self._answers.put((reference, future))
    )
    return reference

  def receive(
    self, timeout_s: float
  ) -> list[tuple[Any, concurrent.futures.Future[bytes]]]:
    """What has been answered, as soon as there is something: the reference of
    each call and its result, which may be one of Ray's errors."""
    received = []
    try:
      received.append(self._answers.get(timeout=timeout_s))
      while True:
        received.append(self._answers.get_nowait())
    except queue.Empty:
      return received

  def close(self) -> None:
    """Disconnects; ends what was started here and removes its files."""
    self.ray.shutdown()
    if self._root is not None:
      shutil.rmtree(self._root, ignore_errors=True)
    for name, value in self._environment.items():
      if value is None:
        os.environ.pop(name, None)
      else:
        os.environ[name] = value
    self._environment = {}
