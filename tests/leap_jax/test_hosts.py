"""Two processes, one program: what they exchange and what each can read."""

import socket

import pytest

from leap_jax import hosts
from tests.leap_jax import two_processes

_PROGRAM = """
import contextlib, pathlib
from leap_jax import compilations, sharding
from kernels_eval.client import HarnessError
from kernels_eval.schema import Evaluation, Phase, Request, Status
assert hosts.is_first() == (me == 0)

class Pool:
  description = "fake"
  executor_name = "fake"
  num_evaluated, num_restarts, broken = 0, 0, False

  def evaluate(self, requests, on_result=None):
    if self.broken:
      raise HarnessError("the disk is full")
    self.num_evaluated += len(requests)
    self.num_restarts = me
    for request in requests:
      on_result and on_result(request.id)
    return [
      Evaluation(id=r.id, problem=r.problem, status=Status.PASSED,
                 phase=Phase.JUDGE, message=f"judge {me}", executor="fake")
      for r in requests]

own = Pool()
with hosts.judges(lambda: contextlib.nullcontext(own)) as pool:
  assert pool.description == "fake"
  asked = [Request(f"{i}/0", "relu", "x" * i) for i in range(5)]
  seen = []
  got = pool.evaluate(asked, seen.append)
  assert seen == [r.id for r in asked[me::2]]
  assert [v.id for v in got] == [r.id for r in asked]
  assert [v.message[-1] for v in got] == list("01010")
  # Counts are of both, whoever had how many.
  assert own.num_evaluated == 3 - me and pool.num_evaluated == 5
  assert pool.num_restarts == 1
  assert pool.evaluate([]) == [] and pool.num_evaluated == 5

  # A fault of one process's judges is everybody's, in the same words.
  own.broken = me == 1
  try:
    pool.evaluate(asked)
  except HarnessError as error:
    assert str(error) == "process 1: the disk is full"
  else:
    raise AssertionError
  own.broken = False

def none_here():
  if me == 0:
    raise HarnessError("there is no g++")
  return contextlib.nullcontext(own)

try:
  with hosts.judges(none_here):
    raise AssertionError
except HarnessError as error:
  assert str(error) == "process 0: there is no g++"

# Floats arrive with all their bits.
assert hosts.from_all(0.1 + me) == [0.1, 1.1]
assert hosts.from_first({"clock": 0.1 + me}) == {"clock": 0.1}

# Half of the verdicts would be of another kind of judge.
own.executor_name = ("cuda", "cpu-fiber")[me]
try:
  with hosts.judges(lambda: contextlib.nullcontext(own)):
    raise AssertionError
except HarnessError as error:
  assert "process 0 judges by cuda, process 1 by cpu-fiber" in str(error)

# Messages of other lengths compile nothing.
message = lambda length: (b"%d" % me) * (length + me)
hosts.exchange(message(1023))
hosts.exchange(message(1030))
with compilations.counted() as compiled:
  for length in (0, 1, 700, 1024, 1500, 2047):
    assert hosts.exchange(message(length)) == [
      b"0" * length, b"1" * (length + 1)]
assert compiled.count == 0, compiled

# Each chooses for itself; so both must have the same.
hosts.check_alike({"devices": "1 x H200", "seed": 0})
try:
  hosts.check_alike({"devices": "1 x H200", "seed": me, "width": me})
  raise AssertionError
except hosts.Unlike as error:
  assert "process 0 has seed=0, process 1 has seed=1" in str(error)

mesh = sharding.make_mesh()
rows = sharding.NamedSharding(mesh, sharding.PartitionSpec("data"))
halves = jax.device_put(np.arange(4.0), rows)
own = jax.numpy.ones(2)
tree = {"halves": halves, "both": sharding.replicate(mesh, own), "own": own}
whole = hosts.to_host(tree)
np.testing.assert_array_equal(whole["halves"], np.arange(4.0))
np.testing.assert_array_equal(whole["both"], whole["own"])
print("done")
"""


def test_a_first_process_that_does_not_answer_is_one_line():
  with socket.socket() as free:  # bound, but nobody listens
    free.bind(("127.0.0.1", 0))
    address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(hosts.Unreachable, match=f"no process 0 at {address}"):
      hosts.connect(address, 2, 1, wait_s=0.0)


def test_two_processes_get_the_same():
  two_processes.run(_PROGRAM)
