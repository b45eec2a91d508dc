"""What is certain to fail does not reach the GPU.

A driver takes up to two seconds to say that a kernel has trapped or met a bad
address, handles one such failure after the other, and takes the whole context
down. A policy in training fails often. So kernels may be run on the CPU
executor first, whose checks cost tens of milliseconds of one processor.
"""

from collections.abc import Sequence

import numpy as np

from kernels_eval.candidate import Candidate
from kernels_eval.cpu import executor as executor_lib
from kernels_eval.cpu.host import HostError
from kernels_eval.outcome import Stop
from kernels_eval.problems import spec
from kernels_eval.schema import Status

# A candidate that the CPU executor cannot compile (CUB, inline assembly) or
# finds wrong is judged by the GPU alone.
_FINAL = (
  Status.RUNTIME_ERROR,
  Status.INTEGRITY_VIOLATION,
  Status.TIMEOUT,
)


class Screen:
  """Runs candidates on the CPU. The executor stays the caller's to close."""

  def __init__(self, executor: executor_lib.Executor):
    """Args: of the CPU."""
    self._executor = executor

  def check(
    self,
    candidate: Candidate,
    problem: spec.Problem,
    cases: Sequence[tuple[spec.Case, dict[str, np.ndarray]]],
  ) -> None:
    """Returns where the GPU shall judge.

    Raises:
      Stop: the CPU executor's checks have found an error in a run.
    """
    try:
      with self._executor.folder() as folder:
        artefact = self._executor.compile(candidate, problem, folder)
        self._executor.run(artefact, candidate, problem, list(cases))
    except Stop as stop:
      if stop.status in _FINAL and stop.case is not None:
        raise
    except (HostError, OSError):
      self._executor.restart()
