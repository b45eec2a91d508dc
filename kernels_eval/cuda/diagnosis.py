"""Where a kernel that has failed on the GPU goes wrong: the failing case runs
once more on the CPU executor, whose checks know the line, or, where that finds
none and it is asked for, under compute-sanitizer."""

import msgspec

from kernels_eval.candidate import Candidate
from kernels_eval.cpu import executor as executor_lib
from kernels_eval.cpu.host import HostError
from kernels_eval.cuda import sanitizer as sanitizer_lib
from kernels_eval.outcome import Stop
from kernels_eval.problems import spec
from kernels_eval.schema import Status


class Diagnosis:
  """Explains failures. Owns an executor."""

  def __init__(
    self,
    executor: executor_lib.Executor,
    seed: int,
    sanitizer: sanitizer_lib.Sanitizer | None = None,
  ):
    """Args: of the CPU, the judge's seed, and what else is asked (None: nobody
    is)."""
    self._executor = executor
    self._seed = seed
    self._sanitizer = sanitizer

  def refine(
    self, stop: Stop, candidate: Candidate, problem: spec.Problem
  ) -> Stop:
    """The same outcome with a finding that names a line, where there is one;
    the outcome itself otherwise. The status is always the GPU's."""
    refined = self._by_cpu(stop, candidate, problem)
    if refined is stop and self._sanitizer is not None:
      finding = self._sanitizer.explain(stop, candidate, problem)
      if isinstance(finding, str):
        return _noted(stop, finding)
      if finding is not None:
        return _with(stop, finding)
    return refined

  def _by_cpu(self, stop, candidate, problem):
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
      return _with(stop, finding)
    except (HostError, OSError):
      self._executor.restart()
    return stop

  def close(self) -> None:
    """Ends the executor. Any thread may call it."""
    self._executor.close()


def _with(stop, finding):
  place = "" if finding.line is None else f"line {finding.line}: "
  return _said(
    stop, f"{place}{finding.message}; on the GPU: {stop.message}", finding
  )


def _noted(stop, note):
  return _said(stop, f"{stop.message} ({note})", stop.finding)


def _said(stop, message, finding):
  return Stop(
    stop.status,
    message,
    finding=finding,
    mismatch=stop.mismatch,
    case=stop.case,
    log=stop.log,
  )
