"""Runs of a sweep on the machines of a Ray cluster, one at a time on each.

    ray start --head --port=6379              # on one machine
    ray start --address=HOST:6379             # on each of the others
    python -m experiments.sweep ... --ray_address=HOST:6379   # on any of them

All need this package in the same version, and --runs has to be a folder that
all of them see. A run has its machine for itself, all its processors and GPUs:
else its seconds would be no measure. A machine that is lost loses no run: it
goes on at its last checkpoint on another one. How Ray is to be protected:
kernels_eval/ray_pool.py.
"""

import collections
import dataclasses
import os
import pathlib
import secrets
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from experiments import provenance, sweep_run
from experiments.config_file import UsageError
from experiments.sweep_plan import Planned
from kernels_eval import ray_cluster

MAX_TRIES = 3
"""Machines that may be lost with a run before it counts as failed."""

STATUS_LOST = -1
"""In place of an exit status: no machine was left to end the run."""

ERRORS = "stderr.txt"
"""In a run's folder: its progress and errors."""

_POLL_S = 2.0


class Order(msgspec.Struct, frozen=True):
  """A run, as a machine is told of it."""

  arguments: tuple[str, ...]
  run_folder: str
  here: str  # where relative paths of the arguments begin


class Greeting(msgspec.Struct, frozen=True):
  """What a machine says of itself."""

  host: str
  commit: str
  token: str | None  # of the folder of runs; None: it does not see it


class Agent:
  """On each machine, an actor of Ray's: starts runs in processes."""

  def hello(self, token_path: bytes) -> bytes:
    """A Greeting."""
    try:
      token = pathlib.Path(token_path.decode()).read_text()
    except OSError:
      token = None
    greeting = Greeting(socket.gethostname(), provenance.commit(), token)
    return msgspec.json.encode(greeting)

  def run(self, frame: bytes) -> bytes:
    """The exit status of an Order, when it has ended."""
    order = msgspec.json.decode(frame, type=Order)
    folder = pathlib.Path(order.run_folder)
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(order.here)
    with open(folder / ERRORS, "a", encoding="utf-8") as errors:
      say = lambda text: print(f"experiments.sweep: {text}", file=errors)
      status = sweep_run.run(order.arguments, folder, say, errors)
    return str(status).encode()


@dataclasses.dataclass
class _Member:
  """A machine of the cluster, as the sweep sees it."""

  machine: ray_cluster.Machine
  actor: Any
  reference: Any  # of the answer that is waited for
  planned: Planned | None = None  # None: it has not greeted yet, or is idle


def _order(planned: Planned) -> bytes:
  return msgspec.json.encode(
    Order(planned.arguments, str(planned.run_folder.absolute()), os.getcwd())
  )


class _Cluster:
  """The machines that may run something."""

  def __init__(self, connection, token_path, token, say):
    self._connection = connection
    self._token_path, self._token = token_path, token
    self._say = say
    self._by_machine: dict[str, _Member | None] = {}  # None: of no use
    self.idle: list[_Member] = []

  def look(self) -> None:
    """Greets machines that have joined."""
    for machine in self._connection.machines():
      if machine.id in self._by_machine:
        continue
      actor = self._connection.start_agent(
        Agent, machine, int(machine.num_cpus), int(machine.num_gpus)
      )
      asked = self._connection.send(actor.hello, str(self._token_path).encode())
      self._by_machine[machine.id] = _Member(machine, actor, asked)

  @property
  def members(self) -> list[_Member]:
    """Machines that are of use, or may be."""
    return [m for m in self._by_machine.values() if m is not None]

  def member(self, reference) -> _Member | None:
    """Whose answer that is."""
    return next((m for m in self.members if m.reference == reference), None)

  def give(self, planned: Planned) -> None:
    """Lets an idle machine run it."""
    member = self.idle.pop(0)
    member.planned = planned
    member.reference = self._connection.send(member.actor.run, _order(planned))
    self._say(f"{planned.name} on {member.machine.host}")

  def greeted(self, member: _Member, answer: bytes) -> None:
    """A machine is of use if it has our code and sees our folder.

    Raises:
      UsageError: it does not; all are to be alike.
    """
    greeting = msgspec.json.decode(answer, type=Greeting)
    if greeting.token != self._token:
      raise UsageError(
        f"{greeting.host} does not see {self._token_path.parent}; --runs must "
        "be a folder that all machines of the cluster share"
      )
    if greeting.commit != provenance.commit():
      raise UsageError(
        f"{greeting.host} has commit {greeting.commit}, this machine "
        f"{provenance.commit()}: tables do not mix them"
      )
    self.idle.append(member)

  def lose(self, member: _Member) -> None:
    """Forgets a machine; under another id it may join again."""
    self._connection.kill(member.actor)
    self._by_machine[member.machine.id] = None

  def end(self) -> None:
    """Ends all agents, and with them their runs."""
    for member in self.members:
      self._connection.kill(member.actor)


def run_all(
  left: Sequence[Planned],
  address: str,
  say: Callable[[str], None],
) -> Iterator[tuple[Planned, int]]:
  """Does runs, in the order of the list as far as machines are free.

  Args:
    left: what is to be done, all of one folder of runs.
    address: host:port of the cluster, of which this machine is part.
    say: told where a run goes, and of machines that are lost.

  Yields:
    Each run that has ended and its exit status, or STATUS_LOST.

  Raises:
    UsageError: a machine has other code or does not see the folder.
    HarnessError: there is no such cluster, or it is gone.
  """
  runs = left[0].run_folder.parents[1].absolute()
  token_path, token = runs / ".sweep_token", secrets.token_hex(16)
  connection = ray_cluster.Connection(address, 1)
  cluster = _Cluster(connection, token_path, token, say)
  waiting, losses = collections.deque(left), collections.Counter()
  try:
    token_path.write_text(token)
    running = 0
    while waiting or running:
      cluster.look()
      if not cluster.members:
        say("no machine of the cluster is left; the rest is not run")
        for planned in waiting:
          yield planned, STATUS_LOST
        return
      while waiting and cluster.idle:
        cluster.give(waiting.popleft())
        running += 1
      for reference, future in connection.receive(_POLL_S):
        member = cluster.member(reference)
        if member is None:
          continue
        try:
          answer = future.result()
        except connection.ray.exceptions.RayError as error:
          cluster.lose(member)
          planned = member.planned
          reason = ray_cluster.last_line(error)
          say(f"{member.machine.host} is lost: {reason}")
          if planned is None:
            continue
          running -= 1
          losses[planned.name] += 1
          if losses[planned.name] < MAX_TRIES:
            waiting.appendleft(planned)
          else:
            yield planned, STATUS_LOST
          continue
        if member.planned is None:
          cluster.greeted(member, answer)
          continue
        planned, member.planned = member.planned, None
        running -= 1
        cluster.idle.append(member)
        yield planned, int(answer)
  finally:
    cluster.end()
    connection.close()
    token_path.unlink(missing_ok=True)
