"""A Ray cluster of several nodes on this machine, for tests."""

import contextlib
import shutil
import tempfile

import pytest

from tests.kernels_eval import machine

_STORE_BYTES = 80 * 2**20
_ENVIRONMENT = {
  "RAY_USAGE_STATS_ENABLED": "0",
  "RAY_AUTH_MODE": "disabled",
  # A node that is killed is noticed within seconds.
  "RAY_health_check_initial_delay_ms": "1000",
  "RAY_health_check_period_ms": "1000",
  "RAY_health_check_failure_threshold": "5",
}


def needs_ray():
  """Skips where Ray is not installed."""
  pytest.importorskip("ray", reason="needs pip install -e '.[ray]'")


def gone(pid):
  """Whether a process has ended."""
  return machine.read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[:1] in (
    [],
    [b"Z"],
  )


class Machines:
  """A cluster whose first node judges nothing, as a learner's may."""

  def __init__(self):
    from ray.cluster_utils import Cluster

    self._cluster = Cluster()
    self.add(0)
    self.address = self._cluster.address

  def add(self, num_cpus=1):
    """Starts a node; returns Ray's record of it."""
    return self._cluster.add_node(
      num_cpus=num_cpus,
      object_store_memory=_STORE_BYTES,
      include_dashboard=False,
    )

  @property
  def nodes(self):
    """The nodes that can judge."""
    return sorted(self._cluster.worker_nodes, key=lambda node: node.node_id)

  def kill(self, node):
    """Kills all of a node's processes, as a power cut does."""
    self._cluster.remove_node(node, allow_graceful=False)

  def kill_own_raylet(self):
    """Kills Ray's process of the node that this process is connected to."""
    (raylet,) = self._cluster.head_node.all_processes["raylet"]
    raylet.process.kill()
    raylet.process.wait()

  def close(self):
    """Ends all nodes."""
    self._cluster.shutdown()


@contextlib.contextmanager
def machines(num_nodes):
  """A cluster with so many nodes of one processor; leaves nothing behind."""
  # Short: the names of sockets below it may have 107 characters.
  folder = tempfile.mkdtemp(prefix="ke-ray-")
  with pytest.MonkeyPatch.context() as patch:
    for name, value in (_ENVIRONMENT | {"RAY_TMPDIR": folder}).items():
      patch.setenv(name, value)
    try:
      cluster = Machines()
      try:
        for _ in range(num_nodes):
          cluster.add()
        yield cluster
      finally:
        cluster.close()
    finally:
      # Helpers of a killed node live on for half a minute, and write.
      machine.kill(folder)
      shutil.rmtree(folder)
