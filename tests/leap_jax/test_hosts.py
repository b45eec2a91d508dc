"""Two processes, one program: what they exchange and what each can read."""

import os
import pathlib
import socket
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]

_PROGRAM = """
import sys
import jax, numpy as np
jax.config.update("jax_platforms", "cpu")
from leap_jax import hosts, sharding
from kernels_eval.schema import Evaluation, Phase, Request, Status
me = int(sys.argv[1])
hosts.connect(f"127.0.0.1:{sys.argv[2]}", 2, me)
assert hosts.is_first() == (me == 0)

class Pool:
  num_evaluated, num_restarts = 3 + me, 0

  def evaluate(self, requests, on_result=None):
    for request in requests:
      on_result and on_result(request.id)
    return [
      Evaluation(id=r.id, problem=r.problem, status=Status.PASSED,
                 phase=Phase.JUDGE, message=f"judge {me}", executor="fake")
      for r in requests]

pool = hosts.SharedPool(Pool())
asked = [Request(f"{i}/0", "relu", "x" * i) for i in range(5)]
seen = []
got = pool.evaluate(asked, seen.append)
assert seen == [r.id for r in asked[me::2]]
assert [v.id for v in got] == [r.id for r in asked]
assert [v.message[-1] for v in got] == list("01010")
assert pool.evaluate([]) == [] and pool.num_evaluated == 3 + me

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
  with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
  env = {
    **os.environ,
    "PYTHONPATH": str(ROOT),
    "XLA_FLAGS": "--xla_force_host_platform_device_count=1",
  }
  both = [
    subprocess.Popen(
      [sys.executable, "-c", _PROGRAM, str(i), str(port)],
      env=env,
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
    )
    for i in range(2)
  ]
  try:
    for process in both:
      out, err = process.communicate(timeout=120)
      assert out.strip().endswith("done"), err[-2000:]
  finally:
    for process in both:
      process.kill()
