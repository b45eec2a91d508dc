"""What turns came to, as arrays for the advantages. Host code."""

from collections.abc import Sequence

import numpy as np

from kernels_eval.schema import Status
from leap_jax.types import Outcomes, Rollouts, Trajectory

MOST_PROGRESS = 3
"""Of a kernel that ran to its end, right or wrong."""

# Stages a candidate has to pass, one after the other. A kernel that passed in
# an answer that was cut has gone as far as one whose answer was wrong.
_PROGRESS = {
  Status.COMPILE_ERROR: 1,
  Status.LAUNCH_ERROR: 2,
  Status.RUNTIME_ERROR: 2,
  Status.TIMEOUT: 2,
  Status.WRONG_ANSWER: MOST_PROGRESS,
  Status.PASSED: MOST_PROGRESS,
}


def progress_of(status: Status) -> int:
  """How far a candidate came: 0 no valid kernel, 1 it did not compile, 2 it
  did not run to its end, 3 it did."""
  return _PROGRESS.get(status, 0)


def make(rollouts: Rollouts, trajectories: Sequence[Trajectory]) -> Outcomes:
  """The outcomes of a rollout.

  Args:
    rollouts: the buffer.
    trajectories: the same samples, row by row (p * G + g).
  """
  p, g, t = rollouts.executed.shape
  progress = np.zeros((p * g, t), np.int32)
  for row, trajectory in enumerate(trajectories):
    for turn, record in enumerate(trajectory.turns):
      progress[row, turn] = progress_of(record.evaluation.status)
  return Outcomes(
    correct=rollouts.correct,
    executed=rollouts.executed,
    ok=rollouts.ok,
    speedup=rollouts.speedup,
    progress=progress.reshape(p, g, t),
  )
