"""Judging on several machines: nodes of a Ray cluster on this one."""

import collections
import os
import pathlib
import signal
import tempfile
import time

import msgspec
import pytest

from kernels_eval import client, ray_pool, worker
from kernels_eval.schema import HARNESS_VERSION, Request, Status
from kernels_eval.settings import Settings
from tests.kernels_eval.machine import processes, read, wait_for
from tests.kernels_eval.ray_machines import gone, machines, needs_ray
from tests.kernels_eval.test_processes import (
  BUSY,
  FAR,
  GOOD,
  TRAP,
  _request,
  _unique,
)
from tests.kernels_eval.test_streams import _streaming

ROOT = pathlib.Path(__file__).parents[2]
SETTINGS = Settings(run_cpu_s=0.5, compile_cpu_s=5.0)
SEED = 918273645546372819
WRONG = GOOD.replace("] + y", "] - y")
MIXED = [
  GOOD,
  TRAP,
  WRONG,
  "no kernel",
  GOOD,
  BUSY,
  GOOD.replace(";", ""),
  "x" * 300_000,
  *(_unique(i) for i in range(6)),
]


@pytest.fixture(scope="module")
def cluster():
  needs_ray()
  with machines(3) as cluster:
    yield cluster


@pytest.fixture
def pool(cluster):
  """A pool that uses all machines."""
  with _pool(cluster) as pool:
    yield pool


def _pool(cluster, **settings):
  return ray_pool.RayPool(
    address=cluster.address, seed=SEED, settings=SETTINGS, **settings
  )


def _agents(pool):
  """Process id of each agent that judges."""
  return [n.welcome.pid for n in pool._nodes.values() if n.welcome]


def _folder(pid):
  """What the folders of an agent's pool begin with."""
  return f"{tempfile.gettempdir()}/kernels_eval-{pid}-"


def _judges(pids):
  """Processes of the pools of these agents, besides the agents."""
  return set().union(*(processes(_folder(pid)) for pid in pids)) - set(pids)


def _statuses(answers):
  return [a.status for a in answers]


def _batch(seed, count):
  """Good, wrong and crashing candidates, and what they must get."""
  kinds = (
    (GOOD, Status.PASSED),
    (WRONG, Status.WRONG_ANSWER),
    (FAR, Status.RUNTIME_ERROR),
  )
  texts = [f"// {seed} {i}\n{kinds[i % 3][0]}" for i in range(count)]
  return (
    [_request(text, str(i)) for i, text in enumerate(texts)],
    [kinds[i % 3][1] for i in range(count)],
  )


def _same(answers):
  """Without what differs between two runs."""
  return [
    msgspec.structs.replace(a, compile_ms=0.0, run_ms=0.0, judge_ms=0.0)
    for a in answers
  ]


def test_answers_are_those_of_the_local_pool_and_the_end_leaves_nothing(
  cluster,
):
  requests = [_request(text, str(i)) for i, text in enumerate(MIXED)]
  with client.Pool(num_workers=2, seed=SEED, settings=SETTINGS) as local:
    expected = local.evaluate(requests)
  seen = []
  with _pool(cluster) as pool:
    answers = pool.evaluate(requests, seen.append)
    assert _same(answers) == _same(expected)
    assert len(seen) == len(requests)
    # Equal texts once, too long ones not at all.
    assert pool.num_evaluated == local.num_evaluated == len(requests) - 2
    # From memory now, but for timeouts, which may be a loaded machine's.
    assert _same(pool.evaluate(requests)) == _same(expected)
    late = sum(a.status == Status.TIMEOUT for a in answers)
    assert pool.num_evaluated == len(requests) - 2 + late
    assert pool.hello == local.hello
    assert pool.description.startswith("3 judges on 3 machines (Ray ")
    # The seed stands nowhere that others can read.
    pids = _agents(pool)
    assert len(pids) == 3
    assert all(_judges([pid]) for pid in pids)
    for pid in _judges(pids) | set(pids):
      for part in ("cmdline", "environ"):
        assert str(SEED).encode() not in read(f"/proc/{pid}/{part}")
  assert wait_for(lambda: all(map(gone, pids)), 10)
  assert _judges(pids) == set()
  for pid in pids:
    folder = pathlib.Path(_folder(pid))
    assert not list(folder.parent.glob(f"{folder.name}*"))
  pool.close()  # a second time


def test_a_batch_that_nobody_listens_to_is_forgotten(pool):
  slow = [_request(f"// {i}\n{BUSY}") for i in range(12)]
  for _, answer in pool.stream(slow):
    assert answer.status == Status.TIMEOUT
    break
  requests, expected = _batch("after", 6)
  started = time.monotonic()
  assert _statuses(pool.evaluate(requests)) == expected
  assert time.monotonic() - started < 20


def test_candidates_may_come_later_and_their_sender_may_fail(pool):
  with _streaming(pool) as (inbox, answers, _):
    inbox.put([_request("// later\n" + BUSY)])
    assert wait_for(lambda: any(n.num_running for n in pool._nodes.values()), 5)
    inbox.put([_request(_unique(700)), _request("x" * 300_000)])
    assert answers.wait_for(1, 2) == [
      Status.PASSED,
      Status.CONTRACT_VIOLATION,
    ]
  assert answers.wait_for(0) == [Status.TIMEOUT]
  with pytest.raises(ZeroDivisionError):
    with _streaming(pool) as (inbox, _, _):
      inbox.put([_request(f"// lost {i}\n{BUSY}") for i in range(12)])
      assert wait_for(
        lambda: all(n.num_running for n in pool._nodes.values()), 5
      )
      raise ZeroDivisionError
  requests, expected = _batch("after a failure", 6)
  started = time.monotonic()
  assert _statuses(pool.evaluate(requests)) == expected
  assert time.monotonic() - started < 20


def test_a_fault_of_a_machine_is_tried_on_the_others_first(pool):
  job = worker.Job(Request("", "no_such_problem", GOOD), [0], b"key")
  waiting, ended = collections.deque([job]), []
  while not ended:
    ended += pool.turn(waiting)
    if waiting:
      assert len(pool._tried[job.key]) == job.num_tries
  assert job.num_tries == 3
  assert ended[0][1].status == Status.INFRASTRUCTURE_ERROR
  assert "no_such_problem" in ended[0][1].message
  pool.abandon()


def test_a_second_connection_is_refused_and_harms_nothing(cluster, pool):
  with pytest.raises(client.HarnessError, match="a connection to Ray already"):
    _pool(cluster)
  requests, expected = _batch("second", 3)
  assert _statuses(pool.evaluate(requests)) == expected


def test_a_machine_that_dies_loses_no_candidate(cluster, pool):
  requests, expected = _batch("death", 48)
  node = cluster.nodes[0]
  pid = pool._nodes[node.node_id].welcome.pid
  answers = [None] * len(requests)
  for index, answer in pool.stream(requests):
    if all(a is None for a in answers):
      assert pool._nodes[node.node_id].num_running > 0
      os.kill(pid, signal.SIGKILL)  # Ray's part may live on for a moment
      cluster.kill(node)
    answers[index] = answer
  assert _statuses(answers) == expected
  assert node.node_id not in pool._nodes
  assert pool.num_restarts == 1
  assert wait_for(lambda: gone(pid) and not _judges([pid]), 5), _judges([pid])
  # Another one joins and gets work.
  joined = cluster.add().node_id
  for i in range(20):
    requests, expected = _batch(f"join {i}", 3)
    assert _statuses(pool.evaluate(requests)) == expected
    if joined in pool._nodes and pool._nodes[joined].welcome:
      break
    time.sleep(0.5)
  requests, expected = _batch("joined", 9)
  used = set()
  for _ in pool.stream(requests):
    used |= {n.machine.id for n in pool._nodes.values() if n.num_running}
  assert joined in used


def test_a_machine_that_has_just_died_hinders_no_start(cluster):
  """Ray lists it for some seconds more."""
  died = cluster.add()
  cluster.kill(died)
  with _pool(cluster) as pool:
    assert died.node_id not in pool._nodes
    assert died.node_id not in pool._lost
    requests, expected = _batch("just died", 6)
    assert _statuses(pool.evaluate(requests)) == expected


def test_an_agent_that_hangs_is_given_up_and_tried_again(cluster, monkeypatch):
  monkeypatch.setattr(ray_pool, "_RETRY_S", 1.0)
  with _pool(cluster, silence_s=3.0) as pool:
    requests, expected = _batch("hang", 18)
    machine, node = next(iter(pool._nodes.items()))
    pid = node.welcome.pid
    answers = [None] * len(requests)
    started = time.monotonic()
    for index, answer in pool.stream(requests):
      if all(a is None for a in answers):
        os.kill(pid, signal.SIGSTOP)
      answers[index] = answer
    assert _statuses(answers) == expected
    assert time.monotonic() - started < 20
    assert "did not answer in time" in pool._lost[machine]
    assert wait_for(lambda: gone(pid) and not _judges([pid]), 20)
    # Its machine is well; a new agent starts there.
    end = time.monotonic() + 30
    while machine in pool._lost and time.monotonic() < end:
      requests, expected = _batch(f"again {time.monotonic()}", 3)
      assert _statuses(pool.evaluate(requests)) == expected
      time.sleep(0.5)
    assert pool._nodes[machine].welcome.pid != pid
  folder = pathlib.Path(_folder(pid))
  assert not list(folder.parent.glob(f"{folder.name}*"))


def test_machines_of_another_version_are_refused(cluster, monkeypatch):
  monkeypatch.setattr(ray_pool, "HARNESS_VERSION", "0.1")
  with pytest.raises(client.HarnessError) as error:
    _pool(cluster)
  words = f"the harness there has version {HARNESS_VERSION}, here it has 0.1"
  assert words in str(error.value)
  assert "\n" not in str(error.value)


def test_the_end_of_all_machines_is_said(cluster):
  """The last test with this cluster: nothing is left of it."""
  endless = Settings(run_cpu_s=60, run_wall_s=60)
  with ray_pool.RayPool(
    address=cluster.address, settings=endless, patience_s=3.0
  ) as pool:
    # Three agents in a row die with the same candidate.
    waiting = collections.deque([worker.Job(_request(BUSY), [0], b"key")])
    killed, ended = set(), []
    while not ended:
      ended += pool.turn(waiting)
      for node in pool._nodes.values():
        if node.num_running and node.welcome.pid not in killed:
          killed.add(node.welcome.pid)
          os.kill(node.welcome.pid, signal.SIGKILL)
    assert len(killed) == ray_pool.MAX_TRIES
    ((job, answer),) = ended
    assert job.indices == [0]
    assert answer.status == Status.INFRASTRUCTURE_ERROR
    assert "3 machines were lost with it" in answer.message
    pool.abandon()
    # Then all machines.
    for node in cluster.nodes:
      cluster.kill(node)
    started = time.monotonic()
    with pytest.raises(client.HarnessError, match="all machines are lost"):
      pool.evaluate([_request(GOOD)])
    assert time.monotonic() - started < 20
    # And Ray's process of this machine.
    cluster.kill_own_raylet()
    said = []

    def is_said():
      with pytest.raises(client.HarnessError) as error:
        while True:
          collections.deque(pool.turn(collections.deque()), maxlen=0)
      said.append(str(error.value))
      return "no longer part of the Ray cluster" in said[-1]

    assert wait_for(is_said, 20), said
