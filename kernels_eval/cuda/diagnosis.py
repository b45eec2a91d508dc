"""Where a kernel that the GPU has stopped goes wrong: the failing case runs
once more on the CPU executor, whose checks know the line."""

import msgspec

from kernels_eval.candidate import Candidate
from kernels_eval.cpu import executor as executor_lib
from kernels_eval.cpu.host import HostError
from kernels_eval.cpu.outcome import Stop
from kernels_eval.problems import spec
from kernels_eval.schema import Status


class Diagnosis:
  """Explains runtime errors. Owns an executor."""

  def __init__(self, executor: executor_lib.Executor, seed: int):
    """Args: of the CPU, and the judge's seed."""
    self._executor = executor
    self._seed = seed

  def refine(
    self, stop: Stop, candidate: Candidate, problem: spec.Problem
  ) -> Stop:
    """The same outcome with a finding that names a line, where the CPU executor
    has one; the outcome itself otherwise. The status is always the GPU's."""
    if stop.status != Status.RUNTIME_ERROR or stop.case is None:
      return stop
    arrays = problem.make_inputs(stop.case, self._seed)
    try:
      with self._executor.folder() as folder:
        artefact = self._executor.compile(candidate, problem, folder)
        self._executor.run(artefact, candidate, problem, [(stop.case, arrays)])
    except Stop as found:
      if found.finding is None or found.finding.line is None:
        return stop
      finding = msgspec.structs.replace(
        found.finding,
        message=f"{found.finding.message} (found on the CPU)",
      )
      return Stop(
        stop.status,
        f"line {finding.line}: {finding.message}; on the GPU: {stop.message}",
        finding=finding,
        case=stop.case,
        log=stop.log,
      )
    except (HostError, OSError):
      self._executor.restart()
    return stop

  def close(self) -> None:
    """Ends the executor. Any thread may call it."""
    self._executor.close()
