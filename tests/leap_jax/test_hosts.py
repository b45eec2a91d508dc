"""Two processes, one program: what they exchange and what each can read."""

from tests.leap_jax import two_processes

_PROGRAM = """
import contextlib, pathlib
from leap_jax import sharding
from kernels_eval.client import HarnessError
from kernels_eval.schema import Evaluation, Phase, Request, Status
assert hosts.is_first() == (me == 0)

class Pool:
  description = "fake"
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

# Each chooses for itself; so both must have the same.
hosts.check_alike("1 x H200")
try:
  hosts.check_alike(f"{1 + me} x H200")
  raise AssertionError
except hosts.Unlike as error:
  assert "process 0 has 1 x H200; process 1 has 2 x H200" in str(error)

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


def test_two_processes_get_the_same():
  two_processes.run(_PROGRAM)
