"""What a pool of machines knows of each of them."""

import dataclasses
from typing import Any

from kernels_eval import node_agent, ray_cluster
from kernels_eval import worker as worker_lib


@dataclasses.dataclass(eq=False)
class Node:
  """A machine and the state of the conversation with its agent."""

  machine: ray_cluster.Machine
  agent: Any
  welcome: node_agent.Welcome | None = None  # None while it starts
  num_running: int = 0
  next_beat_s: float = 0.0  # infinite while one is awaited
  num_restarts: int = 0
  is_settling: bool = False  # has not yet forgotten the last batch

  @property
  def load(self) -> float:
    """Candidates for each of its judges."""
    return self.num_running / self.welcome.num_judges

  @property
  def has_room(self) -> bool:
    """Whether it has not yet all that it works on and some to go on with."""
    judges = self.welcome.num_judges
    return self.num_running < judges + 1 + judges // 4


@dataclasses.dataclass
class Call:
  """A message to an agent that it has not answered."""

  node: Node
  deadline_s: float
  job: worker_lib.Job | None = None
