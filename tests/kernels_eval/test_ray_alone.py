"""A Ray cluster of one machine, and what is told before any is asked."""

import os
import pathlib
import subprocess
import sys
import tempfile
import types

import pytest

from kernels_eval import client, ray_cluster, ray_pool
from tests.kernels_eval.machine import kill, processes, read, wait_for
from tests.kernels_eval.ray_machines import gone, needs_ray
from tests.kernels_eval.test_processes import BUSY, GOOD, TRAP

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize(
  "num_gpus, asked_for, wanted",
  [(8.0, 1, 1.0), (8.0, 2, 2.0), (1.0, 2, 1.0), (0.5, 1, 0.5), (0.0, 1, 0.0)],
)
def test_an_agent_has_the_gpus_that_it_uses(num_gpus, asked_for, wanted):
  """So that Ray gives the others to others."""
  needs_ray()
  asked = {}

  def options(**given):
    asked.update(given)
    return types.SimpleNamespace(remote=lambda: "agent")

  connection = object.__new__(ray_cluster.Connection)
  connection.ray = types.SimpleNamespace(
    remote=lambda kind: types.SimpleNamespace(options=options)
  )
  machine = ray_cluster.Machine("1" * 56, "host", 16.0, num_gpus)
  assert connection.start_agent(object, machine, 4, asked_for) == "agent"
  assert (asked["num_cpus"], asked["num_gpus"]) == (4, wanted)


@pytest.mark.parametrize(
  "address,words",
  [
    ("ray://127.0.0.1:10001", "not of the form host:port"),
    ("127.0.0.1", "not of the form host:port"),
    ("127.0.0.1:9", "no Ray cluster at 127.0.0.1:9 .*ray start --head"),
    ("127.0.0.1:99999", "no Ray cluster at 127.0.0.1:99999"),
    ("no.such.host.invalid:6379", "no Ray cluster at no.such.host.invalid"),
  ],
)
def test_a_wrong_address_is_one_line(address, words):
  needs_ray()
  with pytest.raises(client.HarnessError, match=words) as error:
    ray_pool.RayPool(address=address)
  assert "\n" not in str(error.value)


_ALONE = """
import sys
from kernels_eval import ray_pool
from kernels_eval.settings import Settings
from kernels_eval.schema import Request
settings = Settings(run_cpu_s=60, run_wall_s=60, access_limit=10**12)
for text in sys.argv[1:]:
  with ray_pool.RayPool(num_workers=1, settings=settings) as pool:
    print(pool.description, flush=True)
    answer, = pool.evaluate([Request("", "vector_add", text)])
    print(answer.status, flush=True)
"""


def _alone(folder, *texts):
  return subprocess.Popen(
    [sys.executable, "-c", _ALONE, *texts],
    stdout=subprocess.PIPE,
    text=True,
    cwd=ROOT,
    env={
      **{k: v for k, v in os.environ.items() if not k.startswith("RAY_")},
      "HOME": str(folder),
      "TMPDIR": str(folder),
      "XDG_CACHE_HOME": os.environ.get(
        "XDG_CACHE_HOME", str(pathlib.Path.home() / ".cache")
      ),
    },
  )


def test_without_an_address_a_cluster_is_started_here_and_ended():
  needs_ray()
  with tempfile.TemporaryDirectory(prefix="ke-") as folder:
    with _alone(folder, GOOD, TRAP) as process:
      said = process.stdout.read().splitlines()
    assert process.returncode == 0
    assert said[0].startswith("1 judges on 1 machine (Ray ")
    assert said[1::2] == ["passed", "runtime_error"]
    assert wait_for(lambda: not processes(folder), 5), processes(folder)
    assert os.listdir(folder) == []


def test_a_killed_learner_takes_its_cluster_and_judges_with_it():
  needs_ray()
  with tempfile.TemporaryDirectory(prefix="ke-") as folder:
    with _alone(folder, BUSY) as process:
      process.stdout.readline()
      assert wait_for(
        lambda: any(
          read(f"/proc/{pid}/comm").startswith(b"ke_host")
          for pid in processes(folder)
        ),
        5,
      )
      process.kill()
    # Ray's own helpers notice half a minute later.
    assert wait_for(
      lambda: all(
        read(f"/proc/{pid}/comm").startswith((b"ray::Dash", b"ray::Runt"))
        for pid in processes(folder)
        if not gone(pid)
      ),
      10,
    ), processes(folder)
    kill(folder)
