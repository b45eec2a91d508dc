"""The judge: owns seeds, inputs and references; decides.

It runs in a process of its own (`judge_process.py`).
"""

import contextlib
import hashlib
import time
from typing import TYPE_CHECKING

import msgspec

from kernels_eval import candidate as candidate_lib
from kernels_eval import problems, verdict
from kernels_eval.cpu import executor as executor_lib
from kernels_eval.cpu import host as host_lib
from kernels_eval.schema import (
  HARNESS_VERSION,
  Diagnostic,
  Evaluation,
  Phase,
  Request,
  Status,
)

if TYPE_CHECKING:
  from kernels_eval.cuda import diagnosis as diagnosis_lib
  from kernels_eval.cuda import executor as cuda_executor
  from kernels_eval.cuda import screen as screen_lib
  from kernels_eval.cuda import timing

_MAX_CACHED_PROBLEMS = 64


class Hello(msgspec.Struct, frozen=True):
  """What a judge says when it is ready."""

  executor: str
  toolchain: str
  protections: str
  is_timing: bool = False  # whether right candidates are timed


class Judge:
  """Evaluates requests one after another. Owns an executor."""

  def __init__(
    self,
    executor: "executor_lib.Executor | cuda_executor.CudaExecutor",
    seed: int,
    timer: "timing.Timer | None" = None,
    diagnosis: "diagnosis_lib.Diagnosis | None" = None,
    screen: "screen_lib.Screen | None" = None,
  ):
    """Args: the executor, the seed of all inputs (the judge's secret), what
    times those that are right, what explains those that a GPU stopped, and
    what keeps them from it."""
    self._executor = executor
    self._seed = seed
    self._timer = timer
    self._diagnosis = diagnosis
    self._screen = screen
    self._prepared: dict[str, verdict.Prepared] = {}

  def _prepare(self, name):
    if name not in self._prepared:
      if len(self._prepared) >= _MAX_CACHED_PROBLEMS:
        self._prepared.pop(next(iter(self._prepared)))
      self._prepared[name] = verdict.Prepared(problems.get(name), self._seed)
    return self._prepared[name]

  def evaluate(self, request: Request) -> Evaluation:
    """The verdict; never raises for anything that a candidate does."""
    base = {
      "id": request.id,
      "problem": request.problem,
      "executor": self._executor.name,
      "source_sha256": hashlib.sha256(
        request.text.encode("utf-8", "replace")
      ).hexdigest(),
      "harness_version": HARNESS_VERSION,
    }
    started = time.perf_counter()
    try:
      prepared = self._prepare(request.problem)
    except (problems.UnknownProblem, ValueError) as error:
      return Evaluation(
        status=Status.INFRASTRUCTURE_ERROR,
        phase=Phase.PARSE,
        message=str(error),
        **base,
      )
    base["num_cases"] = len(prepared.cases)
    prepared_ms = executor_lib.elapsed_ms(started)
    try:
      parsed = candidate_lib.parse(request.text, prepared.problem)
    except candidate_lib.CandidateError as error:
      diagnostics = ()
      if error.line is not None:
        diagnostics = (Diagnostic("error", error.message, error.line, None),)
      return Evaluation(
        status=error.status,
        phase=Phase.PARSE,
        message=error.message,
        diagnostics=diagnostics,
        judge_ms=prepared_ms,
        **base,
      )
    return self._compile_run_compare(parsed, prepared, base, prepared_ms)

  def _compile_run_compare(self, parsed, prepared, base, judge_ms):
    clock = _Clock()
    clock.spent_ms[Phase.JUDGE] = judge_ms
    facts = {}
    base["executor"] = self._executor.name_for(parsed.language)
    try:
      with self._executor.folder() as folder:
        self._steps(parsed, prepared, folder, clock, facts)
    except executor_lib.Stop as stop:
      if self._diagnosis is not None:
        stop = self._diagnosis.refine(stop, parsed, prepared.problem)
      facts |= _facts(stop)
    except (host_lib.HostError, OSError, MemoryError) as error:
      self._executor.restart()
      facts = {
        "status": Status.INFRASTRUCTURE_ERROR,
        "message": str(error) or "the judge ran out of memory",
      }
    return Evaluation(
      phase=clock.phase,
      compile_ms=clock.spent_ms[Phase.COMPILE],
      run_ms=clock.spent_ms[Phase.RUN],
      judge_ms=clock.spent_ms[Phase.JUDGE],
      **facts,
      **base,
    )

  def _steps(self, parsed, prepared, folder, clock, facts):
    """Adds to `facts` as it goes; raises Stop for what the executor says."""
    problem = prepared.problem
    with clock.measure(Phase.COMPILE):
      artefact = self._executor.compile(parsed, problem, folder)
    cases = [(c, a) for c, a, _, _ in prepared.cases]
    with clock.measure(Phase.RUN):
      if self._screen is not None:
        found = self._screen.check(parsed, problem, cases)
        if found is not None:  # the GPU has not seen it: nothing to explain
          facts |= _facts(found)
          return
      result = self._executor.run(artefact, parsed, problem, cases)
    facts |= {
      "shared_bytes": result.shared_bytes,
      "num_registers": result.num_registers,
      "local_bytes": result.local_bytes,
      "log": result.log,
    }
    with clock.measure(Phase.JUDGE):
      verdict.check_result(result, prepared)
    facts["num_cases_passed"] = len(prepared.cases)
    message = f"right on all {len(prepared.cases)} cases"
    if self._timer is not None:
      with clock.measure(Phase.TIME):
        timing = self._timer.time(artefact, parsed, problem)
      if timing is None:
        message += "; not timed: answers are the same for all large inputs"
      else:
        facts |= {
          "timing": timing,
          "candidate_ms": timing.candidate_ms,
          "reference_ms": timing.reference_ms,
        }
    facts |= {"status": Status.PASSED, "message": message}


class _Clock:
  """Where an evaluation is, and milliseconds spent in each phase."""

  def __init__(self):
    self.phase = Phase.PARSE
    self.spent_ms = dict.fromkeys(Phase, 0.0)

  @contextlib.contextmanager
  def measure(self, phase):
    self.phase = phase
    started = time.perf_counter()
    try:
      yield
    finally:
      self.spent_ms[phase] += executor_lib.elapsed_ms(started)


def _facts(stop):
  facts = {
    "status": stop.status,
    "message": stop.message,
    "diagnostics": stop.diagnostics,
    "finding": stop.finding,
    "launch_limit": stop.launch_limit,
    "mismatch": stop.mismatch,
    "case": None if stop.case is None else str(stop.case),
  }
  if stop.log:
    facts["log"] = stop.log
  if stop.case is not None:
    facts["num_cases_passed"] = stop.case.index
  return facts
