"""A process that fails ends the others, whatever they are doing."""

import jax

from leap_jax import joint_end
from tests.leap_jax import two_processes

_PROGRAM = """
import time
from leap_jax import joint_end

def say(line):
  assert line == "process 0: the disk is full"
  print("done", flush=True)

try:
  with joint_end.ending_together(say):
    if me == 0:  # JAX's store is in this one
      raise OSError("the disk is full")
    time.sleep(60)
except OSError:
  print("done")
  joint_end.leave(3, "the disk is full")
"""


def test_a_busy_process_ends_with_the_first_one():
  two_processes.run(_PROGRAM)


def test_an_exchange_with_a_process_that_is_gone_is_told(monkeypatch):
  error = ValueError(
    "UNKNOWN: Gloo AllGather failed: Connection closed by peer\nat ..."
  )
  assert joint_end.lost(error) is None  # there is no other process
  monkeypatch.setattr(jax, "process_count", lambda: 2)
  line = joint_end.lost(error)
  assert line.startswith("another process of this run is gone (UNKNOWN: Gloo")
  assert "\n" not in line
  assert joint_end.lost(ValueError("loss nan")) is None
