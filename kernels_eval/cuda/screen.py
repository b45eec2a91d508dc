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

# Kinds of finding that hold on any device. Not among them is what belongs to
# the CPU executor alone: its limits on time, accesses and a thread's stack, its
# own names, signals of its process. Nor does it decide about what it cannot
# compile (CUB, inline assembly) or finds wrong.
_CERTAIN = frozenset(
  (
    *("out_of_bounds", "misaligned", "bad_address", "uninitialized_read"),
    *("input_modified", "data_race", "divergent_barrier", "divergent_warp"),
    *("division_by_zero", "trap", "assertion_failed", "unreachable"),
  )
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
  ) -> Stop | None:
    """The outcome, where the checks of a run have found an error that is none
    of the executor's own; None where the GPU shall judge."""
    try:
      with self._executor.folder() as folder:
        artefact = self._executor.compile(candidate, problem, folder)
        self._executor.run(artefact, candidate, problem, list(cases))
    except Stop as stop:
      if stop.finding is not None and stop.finding.kind in _CERTAIN:
        return stop
    except (HostError, OSError):
      self._executor.restart()
    return None
