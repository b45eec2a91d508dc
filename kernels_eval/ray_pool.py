"""Judging on several machines: a pool whose members are machines.

    ray start --head --port=6379              # on one machine
    ray start --address=HOST:6379             # on each of the others
    python -m experiments.run ... --config.harness.backend=ray \\
      --config.harness.ray_address=HOST:6379  # on any of them

All need the same version of this package and of Ray (`pip install
'leap-jax[ray]'`) and g++. Ray gives whoever reaches its ports the right to run
code: keep the cluster on a private network, or set RAY_AUTH_MODE=token. A
machine that Ray gave no processors (`ray start --num-cpus=0`) does not judge.

Each machine has one agent (`node_agent.py`), which holds a local pool; a
candidate runs in the pool's sandbox as ever, never in a process of Ray's. Each
agent has as many candidates as it has judges and a few to go on with, so that
a fast machine takes more. The deadlines are kept here: a machine that is gone,
silent or late is lost, its candidates go to others, and it is tried again
later, as is one that joins. A candidate that was lost `MAX_TRIES` times is
reported as `infrastructure_error`.
"""

import atexit
import collections
import os
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from kernels_eval import (
  addresses,
  batches,
  client,
  executors,
  node_agent,
  ray_cluster,
  ray_node,
  verdict_cache,
)
from kernels_eval import worker as worker_lib
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.schema import HARNESS_VERSION, Evaluation, Phase, Status
from kernels_eval.settings import Settings

MAX_TRIES = 3
_POLL_S = 2.0  # between two looks at the list of machines
_LEAVES_S = 60.0  # until Ray notices at the latest that a machine is gone
_WAKE_S = 0.05  # until candidates that come during a turn are seen
_BEATS = 4  # within the time of silence that loses a machine
_STOP_S = 10.0  # for the agents to end their judges
_RETRY_S, _MAX_RETRY_S = 5.0, 300.0  # until a lost machine is tried again
_START_S = worker_lib.START_S + 60.0  # of an agent: Ray's part and a judge's


class RayPool(batches.Judges):
  """Judges candidates on the machines of a Ray cluster: close it, or use
  `with`. Used like `client.Pool`."""

  def __init__(
    self,
    *,
    address: str | None = None,
    num_workers: int | None = None,
    seed: int = 0,
    settings: Settings = client.DEFAULT_SETTINGS,
    executor: str = "auto",
    cuda_settings: CudaSettings = client.DEFAULT_CUDA_SETTINGS,
    cache: verdict_cache.Cache | None = None,
    silence_s: float = 30.0,
    patience_s: float = 60.0,
  ):
    """Connects and starts an agent on each machine.

    Args:
      address: host:port of the cluster; None starts one of this machine alone.
      num_workers: judges of each machine; None means one for each processor
        that Ray counts there.
      seed: of all test inputs. Known to the judges, never to a candidate.
      settings: limits of an evaluation.
      executor: where candidates run: one of `executors.EXECUTORS`.
      cuda_settings: `devices` count among those that Ray gives: (0, 1) asks
        for two of each machine; one that has fewer uses what it has.
      cache: of verdicts, as for `client.Pool`.
      silence_s: a machine that does not answer for so long is lost.
      patience_s: how long to wait for a machine when all are lost.

    Raises:
      HarnessError: Ray is not installed, there is no such cluster, a machine
        has another version of the harness or cannot judge, or none can.
    """
    super().__init__(
      settings, verdict_cache.Memory() if cache is None else cache
    )
    self._num_workers = num_workers
    self._silence_s, self._patience_s = silence_s, patience_s
    self._setup = node_agent.Setup(
      HARNESS_VERSION, 0, seed, settings, executor, cuda_settings
    )
    self._nodes: dict[str, ray_node.Node] = {}  # by the id of the machine
    self._calls: dict[
      Any, ray_node.Call
    ] = {}  # by Ray's reference of the answer
    self._tried: dict[bytes, set[str]] = collections.defaultdict(set)
    self._lost: dict[str, str] = {}  # machine id -> host and reason
    self._dropped: set[str] = set()  # those of them whose agent Ray ended
    self._num_failures: collections.Counter[str] = collections.Counter()
    self._retry_at: dict[str, float] = {}
    self._next_look = 0.0
    self._idle_since: float | None = None
    self.hello = None
    count = num_workers or len(os.sched_getaffinity(0))
    self._cluster = ray_cluster.Connection(address, count)
    atexit.register(self.close)
    try:
      self._start_all()
      self.make_key = addresses.make_address(
        self.hello, settings, cuda_settings, seed
      )
      self.executor_name = self.hello.executor
    except BaseException:
      self.close()
      raise

  def _start_all(self):
    nothing = collections.deque()
    collections.deque(self._look(nothing), maxlen=0)
    if not self._nodes:
      raise client.HarnessError(
        "no machine of the Ray cluster has processors to judge on"
      )
    while any(node.welcome is None for node in self._nodes.values()):
      collections.deque(self.turn(nothing), maxlen=0)
      for machine_id, reason in list(self._lost.items()):
        if machine_id in self._dropped and self._leaves(machine_id):
          del self._lost[machine_id]
          continue
        # At the start somebody is there to mend it; later the others go on.
        raise client.HarnessError(f"a machine cannot judge; {reason}")
    if not self._nodes:
      raise client.HarnessError("all machines have left the Ray cluster")

  def _leaves(self, machine_id):
    """Whether a machine is gone: Ray lists one that has lost its power for
    some seconds more, and ends what is started there."""
    end = time.monotonic() + _LEAVES_S
    while time.monotonic() < end:
      if all(m.id != machine_id for m in self._cluster.machines()):
        return True
      time.sleep(0.5)
    return False

  @property
  def description(self) -> str:
    """One line: machines, executor, toolchains and active protections."""
    ready = [n.welcome for n in self._nodes.values() if n.welcome]
    tools = sorted({w.judge.toolchain for w in ready})
    protections = sorted({w.judge.protections for w in ready})
    return (
      f"{sum(w.num_judges for w in ready)} judges on {len(ready)} "
      f"{'machine' if len(ready) == 1 else 'machines'} "
      f"(Ray {self._cluster.ray.__version__}, {self._cluster.address}), "
      f"executor {self.hello.executor} ({', '.join(tools)}); "
      f"sandbox: {' | '.join(protections)}"
    )

  # ------------------------------------------------------------ one turn

  def turn(
    self,
    waiting: collections.deque[worker_lib.Job],
    wake_fd: int | None = None,
  ) -> Iterator[tuple[worker_lib.Job, Evaluation]]:
    """Gives out work, waits for news once (Ray's have no descriptor: with a
    `wake_fd` only shorter); yields what has ended.

    Raises:
      HarnessError: all machines are lost, and none comes back.
    """
    yield from self._look(waiting)
    self._give_out(waiting)
    self._ask_for_beats()
    now = time.monotonic()
    nearest = min((c.deadline_s for c in self._calls.values()), default=now + 1)
    longest_s = 0.5 if wake_fd is None else _WAKE_S
    timeout_s = max(0.0, min(nearest - now, longest_s))
    for call, answer in self._cluster.receive(timeout_s):
      if call in self._calls:  # else nobody waits for it any more
        yield from self._read(call, answer, waiting)
    now = time.monotonic()
    for call in list(self._calls.values()):
      node = call.node
      if call.deadline_s < now and self._nodes.get(node.machine.id) is node:
        reason = (
          "it did not answer in time"
          if node.welcome
          else "no agent started in time (has Ray given its processors away?)"
        )
        yield from self._lose(node, reason, waiting)
    self._check_that_some_are_left()

  def _look(self, waiting):
    """Compares the cluster's list of machines with what is in use."""
    now = time.monotonic()
    if now < self._next_look:
      return
    self._next_look = now + _POLL_S
    machines = {m.id: m for m in self._cluster.machines()}
    for node in list(self._nodes.values()):
      if node.machine.id not in machines:
        yield from self._lose(node, "it left the cluster", waiting)
    for machine in machines.values():
      if machine.id not in self._nodes:
        if now >= self._retry_at.get(machine.id, 0.0):
          self._start_agent(machine)

  def _start_agent(self, machine):
    num_judges = self._num_workers or max(1, int(machine.num_cpus))
    wanted = len(self._setup.cuda_settings.devices)
    # No more than judges; a part of one (Ray shares it out) is one.
    num_gpus = max(1, min(wanted, int(machine.num_gpus), num_judges))
    agent = self._cluster.start_agent(
      node_agent.NodeAgent, machine, num_judges, num_gpus
    )
    node = ray_node.Node(machine, agent)
    self._nodes[machine.id] = node
    setup = self._setup.frame_for(num_judges, num_gpus)
    call = self._cluster.send(agent.start, setup)
    self._calls[call] = ray_node.Call(node, time.monotonic() + _START_S)

  def _ready(self):
    return [n for n in self._nodes.values() if n.welcome and not n.is_settling]

  def _give_out(self, waiting):
    ready = self._ready()
    ids = {node.machine.id for node in ready}
    while waiting:
      for node in sorted(ready, key=lambda n: n.load):
        job = self._take(waiting, node, ids) if node.has_room else None
        if job is not None:
          break
      else:
        return
      request = worker_lib.encode(job.request)
      call = self._cluster.send(node.agent.judge, request)
      node.num_running += 1
      deadline = time.monotonic() + self._answer_s(node.welcome)
      self._calls[call] = ray_node.Call(node, deadline, job)

  def _answer_s(self, welcome):
    """Twice for a candidate, and for the one before it."""
    has_gpu = self.hello.executor == executors.CUDA
    queue_s = client.gpu_queue_s(welcome.num_judges) if has_gpu else 0.0
    return 4 * (self.seconds_allowed + queue_s)

  def _take(self, waiting, node, ids):
    """A job that this machine has not failed at, if others can have those."""
    for i, job in enumerate(waiting):
      tried = self._tried.get(job.key, set())
      if node.machine.id not in tried or ids <= tried:
        del waiting[i]
        return job
    return None

  def _ask_for_beats(self):
    now = time.monotonic()
    for node in self._ready():
      if now >= node.next_beat_s:
        node.next_beat_s = float("inf")
        call = self._cluster.send(node.agent.beat)
        self._calls[call] = ray_node.Call(node, now + self._silence_s)

  def _read(self, call, answer, waiting):
    """Takes an answer; yields what it ends."""
    node, job = self._calls[call].node, self._calls[call].job
    try:
      reply = msgspec.msgpack.decode(answer.result(), type=node_agent.Reply)
    except (self._cluster.ray.exceptions.RayError, msgspec.MsgspecError) as e:
      self._dropped.add(node.machine.id)
      yield from self._lose(node, ray_cluster.last_line(e), waiting)
      return
    match reply:
      case node_agent.Failure(message):
        yield from self._lose(node, message, waiting)
      case node_agent.Welcome():
        del self._calls[call]
        yield from self._greet(node, reply, waiting)
      case node_agent.Beat(num_restarts):
        del self._calls[call]
        self.num_restarts += num_restarts - node.num_restarts
        node.num_restarts = num_restarts
        node.is_settling = False
        node.next_beat_s = time.monotonic() + self._silence_s / _BEATS
      case node_agent.Verdict(evaluation):
        del self._calls[call]
        node.num_running -= 1
        if not evaluation.counts and self._may_try_again(node, job):
          waiting.append(job)
        else:
          yield job, evaluation

  def _greet(self, node, welcome, waiting):
    self.hello = self.hello or welcome.judge
    if welcome.judge.executor != self.hello.executor:
      reason = (
        f"its executor is {welcome.judge.executor}, that of the others "
        f"{self.hello.executor}; one cluster, one kind of verdict"
      )
      yield from self._lose(node, reason, waiting)
      return
    node.welcome = welcome
    self._lost.pop(node.machine.id, None)
    self._num_failures.pop(node.machine.id, None)

  def _may_try_again(self, node, job):
    """Counts a lost try; whether there may be another one, elsewhere."""
    job.num_tries += 1
    self._tried[job.key].add(node.machine.id)
    others = {n.machine.id for n in self._ready()} - self._tried[job.key]
    return job.num_tries < MAX_TRIES and bool(others)

  def _lose(self, node, reason, waiting):
    """Gives a machine up; its candidates go back to the queue, or end."""
    self._cluster.kill(node.agent)
    machine = node.machine
    del self._nodes[machine.id]
    self.num_restarts += 1
    self._lost[machine.id] = f"{machine.host}: {reason}"
    delay_s = min(_RETRY_S * 2 ** self._num_failures[machine.id], _MAX_RETRY_S)
    self._num_failures[machine.id] += 1
    self._retry_at[machine.id] = time.monotonic() + delay_s
    jobs = [c.job for c in self._calls.values() if c.node is node and c.job]
    self._calls = {r: c for r, c in self._calls.items() if c.node is not node}
    for job in jobs:
      job.num_tries += 1
      self._tried[job.key].add(machine.id)
      if job.num_tries < MAX_TRIES:
        waiting.append(job)
      else:
        yield job, self._fault(job, self._lost[machine.id])

  def _fault(self, job, reason):
    message = f"{MAX_TRIES} machines were lost with it, the last one {reason}"
    status = Status.INFRASTRUCTURE_ERROR
    return self.unjudged(job.request, status, Phase.RUN, message)

  def _check_that_some_are_left(self):
    now = time.monotonic()
    if any(node.welcome for node in self._nodes.values()):
      self._idle_since = None
      return
    if self._idle_since is None:
      self._idle_since = now
    allowed_s = self._patience_s + (_START_S if self._nodes else 0.0)
    if now - self._idle_since > allowed_s:
      reasons = "; ".join(list(self._lost.values())[-3:])
      raise client.HarnessError(f"all machines are lost ({reasons})")

  # ------------------------------------------------------------- the end

  def abandon(self) -> None:
    """Lets all machines forget what they have not answered."""
    # Answers to beats are not read between batches; silence then is no sign.
    self._calls = {
      r: c for r, c in self._calls.items() if c.node.welcome is None
    }
    self._tried.clear()
    self._idle_since = None
    for node in self._nodes.values():
      node.next_beat_s = 0.0
      if node.num_running or node.is_settling:
        node.num_running = 0
        node.is_settling = True
        call = self._cluster.send(node.agent.abandon)
        self._calls[call] = ray_node.Call(
          node, time.monotonic() + self._silence_s
        )

  def close(self) -> None:
    """Ends all agents and their judges. May be called twice."""
    atexit.unregister(self.close)
    if self._cluster is None:
      return
    cluster, self._cluster = self._cluster, None
    agents = [node.agent for node in self._nodes.values()]
    self._nodes, self._calls = {}, {}
    if cluster.is_open:  # else a call would start a cluster
      stops = {cluster.send(agent.stop) for agent in agents}
      end = time.monotonic() + _STOP_S
      while stops and (left_s := end - time.monotonic()) > 0:
        stops -= {call for call, _ in cluster.receive(left_s)}
      for agent in agents:
        cluster.kill(agent)
    cluster.close()
