"""What turns came to, as arrays."""

from types import SimpleNamespace

import numpy as np
import pytest

from kernels_eval.schema import Status
from leap_jax import outcomes


@pytest.mark.parametrize("status", Status, ids=str)
def test_every_status_has_its_stage(status):
  stages = {
    "no_kernel": 0,
    "contract_violation": 0,
    "integrity_violation": 0,
    "infrastructure_error": 0,
    "compile_error": 1,
    "launch_error": 2,
    "runtime_error": 2,
    "timeout": 2,
    "wrong_answer": 3,
    "passed": 3,
  }
  assert outcomes.progress_of(status) == stages[status.value]


def test_rows_fall_into_their_groups_and_turns():
  turn = lambda status: SimpleNamespace(
    evaluation=SimpleNamespace(status=status)
  )
  rows = [
    [Status.COMPILE_ERROR, Status.PASSED],
    [Status.WRONG_ANSWER],
    [Status.NO_KERNEL],
    [Status.TIMEOUT, Status.NO_KERNEL],
  ]
  trajectories = [
    SimpleNamespace(turns=[turn(status) for status in row]) for row in rows
  ]
  masks = np.zeros((2, 2, 2), bool)
  rollouts = SimpleNamespace(
    correct=masks, executed=masks, ok=masks[..., 0], speedup=masks
  )
  got = outcomes.make(rollouts, trajectories).progress
  assert got.tolist() == [[[1, 3], [3, 0]], [[0, 0], [2, 0]]]
