"""The judge: owns seeds, inputs and references; decides.

Runs as a process of its own (`python -m kernels_eval.judge`), which reads
requests from standard input and answers on standard output, in length-prefixed
msgpack frames (`frames.py`). The learner talks to it through `client.py`.
"""

import argparse
import contextlib
import hashlib
import os
import pathlib
import select
import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from kernels_eval import candidate as candidate_lib
from kernels_eval import frames, problems, sandbox, verdict
from kernels_eval.cpu import executor as executor_lib
from kernels_eval.cpu import host as host_lib
from kernels_eval.cpu import toolchain
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.functions import judging as function_judging
from kernels_eval.functions import pipelines
from kernels_eval.schema import (
  HARNESS_VERSION,
  Diagnostic,
  Evaluation,
  Phase,
  Request,
  Status,
)
from kernels_eval.settings import Settings

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


def make(
  root: pathlib.Path, seed: int, settings: Settings
) -> tuple[Judge, Hello, Callable[[], None]]:
  """A judge that runs candidates on the CPU, what it says of itself, and its
  end.

  Args:
    root: existing folder for temporary files.
    seed: of all inputs.
    settings: limits of an evaluation.

  Raises:
    toolchain.ToolchainError, host.HostError: this machine cannot judge.
  """
  tools = toolchain.prepare()
  protections = sandbox.probe()
  executor = executor_lib.Executor(tools, protections, root, settings)
  hello = Hello(
    executor_lib.NAME, f"g++ {tools.version}", protections.describe()
  )

  def close():
    executor.close()
    tools.release()

  return Judge(executor, seed), hello, close


def make_cuda(
  root: pathlib.Path,
  seed: int,
  settings: Settings,
  server: pathlib.Path,
  cuda_settings: CudaSettings,
) -> tuple[Judge, Hello, Callable[[], None]]:
  """As `make`, on the GPU whose server listens at `server`, in the folder of
  the pool."""
  from kernels_eval.cuda import diagnosis as diagnosis_lib
  from kernels_eval.cuda import executor as cuda_executor
  from kernels_eval.cuda import jax_reference, timing, toolkit
  from kernels_eval.cuda import sanitizer as sanitizer_lib
  from kernels_eval.cuda import screen as screen_lib

  tool = sanitizer_lib.find() if cuda_settings.with_sanitizer else None
  if cuda_settings.with_sanitizer and tool is None:
    raise toolchain.ToolchainError(
      "compute-sanitizer is asked for and not installed: put the toolkit's on "
      "PATH, or pip install nvidia-cuda-sanitizer-api"
    )
  tools = toolchain.prepare()
  protections = sandbox.probe()
  try:
    kit = toolkit.find()
  except toolkit.ToolkitError as error:
    raise toolchain.ToolchainError(str(error)) from None
  executor = cuda_executor.CudaExecutor(
    tools, kit, protections, root, server, settings, cuda_settings
  )
  device = executor.device
  cpu_executor = executor_lib.Executor(tools, protections, root, settings)
  screen, before = None, ""
  if cuda_settings.with_cpu_first:
    screen = screen_lib.Screen(cpu_executor)
    before = f", after g++ {tools.version} on the CPU"
  hello = Hello(
    cuda_executor.NAME,
    f"NVRTC {kit.version}, {device.device}, driver {device.driver_version}"
    + before,
    protections.describe(),
    cuda_settings.with_timing,
  )
  timer = jax = None
  if cuda_settings.with_jax:
    jax = jax_reference.JaxReference(
      server.parent,
      cuda_settings.device,
      cuda_settings.jax_wall_s,
      executor.alone,
    )
  sanitizer = None
  if cuda_settings.with_sanitizer:
    sanitizer = sanitizer_lib.Sanitizer(
      tool,
      executor,
      seed,
      cuda_settings.device,
      cuda_settings.sanitizer_wall_s,
    )
  if cuda_settings.with_timing:
    timer = timing.Timer(executor, seed, cuda_settings.timing_wall_s, jax)
  diagnosis = diagnosis_lib.Diagnosis(cpu_executor, seed, sanitizer)

  def close():
    executor.close()
    diagnosis.close()
    tools.release()

  return Judge(executor, seed, timer, diagnosis, screen), hello, close


def _end_with_client(ending, close, root):
  """Ends this process when the client is gone, in the middle of a job too."""
  poll = select.poll()
  poll.register(0, 0)  # nothing but a hang-up
  poll.poll()
  ending.set()
  close()
  shutil.rmtree(root, ignore_errors=True)
  os._exit(0)


def main(argv: list[str]) -> int:
  """Serves until standard input closes."""
  parser = argparse.ArgumentParser(prog="python -m kernels_eval.judge")
  parser.add_argument("--root", type=pathlib.Path, required=True)
  parser.add_argument("--settings", default="{}")
  parser.add_argument(
    "--server", type=pathlib.Path, help="socket of a GPU's server"
  )
  parser.add_argument("--cuda-settings", default="{}")
  arguments = parser.parse_args(argv)
  # Nothing that a library prints may get between the frames.
  answers = os.fdopen(os.dup(1), "wb", buffering=0)
  os.dup2(2, 1)
  requests = sys.stdin.buffer
  # The seed comes as the first frame, not in argv, where others could see it.
  seed = msgspec.msgpack.decode(frames.read(requests), type=int)
  settings = msgspec.convert(msgspec.json.decode(arguments.settings), Settings)
  cuda_settings = msgspec.json.decode(
    arguments.cuda_settings, type=CudaSettings
  )
  try:
    if arguments.server is None:
      judge, hello, close = make(arguments.root, seed, settings)
    else:
      judge, hello, close = make_cuda(
        arguments.root, seed, settings, arguments.server, cuda_settings
      )
  except (toolchain.ToolchainError, host_lib.HostError, OSError) as error:
    frames.write(answers, msgspec.msgpack.encode(str(error)))
    return 1
  functions = function_judging.FunctionJudge(arguments.root, settings, seed)

  def close_both():
    functions.close()
    close()

  ending = threading.Event()
  ender = threading.Thread(
    target=_end_with_client,
    args=(ending, close_both, arguments.root),
    daemon=True,
  )
  ender.start()
  frames.write(answers, msgspec.msgpack.encode(hello))
  try:
    while True:
      frame = frames.read(requests)
      if frame is None:
        break
      request = msgspec.msgpack.decode(frame, type=Request)
      is_function = pipelines.is_name(request.problem)
      found = (functions if is_function else judge).evaluate(request)
      frames.write(answers, msgspec.msgpack.encode(found))
  except (host_lib.HostError, frames.FrameError, OSError) as error:
    if not ending.wait(0.1):  # else it is the end that makes the job fail
      if not isinstance(error, host_lib.HostError):
        raise
      reason = " ".join(str(error).split())  # one line, written in one piece
      sys.stderr.write(f"kernels_eval: a judge ends: {reason}\n")
      return 1
  ender.join()
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
