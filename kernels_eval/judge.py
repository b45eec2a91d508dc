"""The judge: owns seeds, inputs and references; decides.

Runs as a process of its own (`python -m kernels_eval.judge`), which reads
requests from standard input and answers on standard output, in length-prefixed
msgpack frames (`frames.py`). The learner talks to it through `client.py`.
"""

import argparse
import hashlib
import os
import pathlib
import select
import shutil
import sys
import threading
import time
from collections.abc import Callable

import msgspec
import numpy as np

from kernels_eval import candidate as candidate_lib
from kernels_eval import correctness, dtypes, frames, problems, sandbox
from kernels_eval.cpu import executor as executor_lib
from kernels_eval.cpu import host as host_lib
from kernels_eval.cpu import toolchain
from kernels_eval.problems import spec
from kernels_eval.schema import (
  HARNESS_VERSION,
  Diagnostic,
  Evaluation,
  Mismatch,
  Phase,
  Request,
  Status,
)

_MAX_CACHED_PROBLEMS = 64


class Hello(msgspec.Struct, frozen=True):
  """What a judge says when it is ready."""

  executor: str
  toolchain: str
  protections: str


class _Prepared:
  """Inputs and references of one problem."""

  def __init__(self, problem: spec.Problem, seed: int):
    self.problem = problem
    self.cases = []
    for case in problem.cases:
      arrays = problem.make_inputs(case, seed)
      with np.errstate(all="ignore"):
        exact = problem.expected(case, arrays)
        single = problem.expected(case, arrays, np.float32)
      for name, values in exact.items():
        # In float32 too: what is infinite there would make any answer right.
        if not (np.isfinite(values).all() and np.isfinite(single[name]).all()):
          raise ValueError(
            f"the reference of {problem.name} is not finite: {name}, {case}"
          )
      self.cases.append((case, arrays, exact, single))


class Judge:
  """Evaluates requests one after another. Owns an executor."""

  def __init__(self, executor: executor_lib.Executor, seed: int):
    """Args: the executor, and the seed of all inputs (the judge's secret)."""
    self._executor = executor
    self._seed = seed
    self._prepared: dict[str, _Prepared] = {}

  def _prepare(self, name):
    if name not in self._prepared:
      if len(self._prepared) >= _MAX_CACHED_PROBLEMS:
        self._prepared.pop(next(iter(self._prepared)))
      self._prepared[name] = _Prepared(problems.get(name), self._seed)
    return self._prepared[name]

  def evaluate(self, request: Request) -> Evaluation:
    """The verdict; never raises for anything that a candidate does."""
    base = {
      "id": request.id,
      "problem": request.problem,
      "executor": executor_lib.NAME,
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
    try:
      with self._executor.folder() as folder:
        return self._compile_run_compare(
          parsed, prepared, folder, base, prepared_ms
        )
    except (host_lib.HostError, OSError) as error:
      self._executor.restart()
      return Evaluation(
        status=Status.INFRASTRUCTURE_ERROR,
        phase=Phase.RUN,
        message=str(error),
        **base,
      )

  def _compile_run_compare(self, parsed, prepared, folder, base, judge_ms):
    problem = prepared.problem
    phase, compile_ms, run_ms = Phase.COMPILE, 0.0, 0.0
    started = time.perf_counter()
    try:
      artefact = self._executor.compile(parsed, problem, folder)
      compile_ms = executor_lib.elapsed_ms(started)
      phase, started = Phase.RUN, time.perf_counter()
      result = self._executor.run(
        artefact, parsed, problem, [(c, a) for c, a, _, _ in prepared.cases]
      )
      run_ms = executor_lib.elapsed_ms(started)
    except executor_lib.Stop as stop:
      if phase == Phase.COMPILE:
        compile_ms = executor_lib.elapsed_ms(started)
      else:
        run_ms = executor_lib.elapsed_ms(started)
      return Evaluation(
        status=stop.status,
        phase=phase,
        message=stop.message,
        diagnostics=stop.diagnostics,
        finding=stop.finding,
        case=None if stop.case is None else str(stop.case),
        num_cases_passed=0 if stop.case is None else stop.case.index,
        log=stop.log,
        compile_ms=compile_ms,
        run_ms=run_ms,
        judge_ms=judge_ms,
        **base,
      )
    started = time.perf_counter()
    verdict = self._verdict(result, prepared)
    judge_ms += executor_lib.elapsed_ms(started)
    return Evaluation(
      phase=Phase.JUDGE,
      shared_bytes=result.shared_bytes,
      log=result.log,
      compile_ms=compile_ms,
      run_ms=run_ms,
      judge_ms=judge_ms,
      **verdict,
      **base,
    )

  def _verdict(self, result, prepared):
    problem = prepared.problem
    for i, (case, arrays, exact, single) in enumerate(prepared.cases):
      for tensor in problem.inputs:
        before = arrays[tensor.name].reshape(-1).view(np.uint8)
        if not np.array_equal(result.inputs[i][tensor.name], before):
          return {
            "status": Status.INTEGRITY_VIOLATION,
            "message": f"input `{tensor.name}` was modified",
            "case": str(case),
            "num_cases_passed": i,
          }
      for tensor in problem.outputs:
        stored = (
          result.outputs[i][tensor.name]
          .view(dtypes.DTYPES[tensor.dtype].storage)
          .reshape(tensor.shape_for(case.dims))
        )
        mismatch = correctness.compare(
          tensor.name,
          stored,
          exact[tensor.name],
          single[tensor.name],
          tensor.dtype,
          factor=problem.tolerance_factor,
        )
        if mismatch is not None:
          return {
            "status": Status.WRONG_ANSWER,
            "message": describe_mismatch(mismatch),
            "mismatch": mismatch,
            "case": str(case),
            "num_cases_passed": i,
          }
    return {
      "status": Status.PASSED,
      "message": f"right on all {len(prepared.cases)} cases",
      "num_cases_passed": len(prepared.cases),
    }


def describe_mismatch(m: Mismatch) -> str:
  """One line: where, what was expected, how much is wrong."""
  index = ", ".join(str(i) for i in m.first_wrong_index)
  text = (
    f"{m.output}[{index}] is {m.got:.6g}, expected {m.expected:.6g}; "
    f"{m.num_wrong} of {m.num_elements} elements are wrong"
  )
  if m.num_unwritten:
    text += f", {m.num_unwritten} were never written"
  elif m.num_not_finite:
    text += f", {m.num_not_finite} are not finite"
  return text


def make(
  root: pathlib.Path, seed: int, settings: executor_lib.Settings
) -> tuple[Judge, Hello, Callable[[], None]]:
  """A judge with its executor, what it says of itself, and its end.

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
  return Judge(executor, seed), hello, executor.close


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
  arguments = parser.parse_args(argv)
  # Nothing that a library prints may get between the frames.
  answers = os.fdopen(os.dup(1), "wb", buffering=0)
  os.dup2(2, 1)
  requests = sys.stdin.buffer
  # The seed comes as the first frame, not in argv, where others could see it.
  seed = msgspec.msgpack.decode(frames.read(requests), type=int)
  settings = msgspec.convert(
    msgspec.json.decode(arguments.settings), executor_lib.Settings
  )
  try:
    judge, hello, close = make(arguments.root, seed, settings)
  except (toolchain.ToolchainError, host_lib.HostError, OSError) as error:
    frames.write(answers, msgspec.msgpack.encode(str(error)))
    return 1
  ending = threading.Event()
  ender = threading.Thread(
    target=_end_with_client, args=(ending, close, arguments.root), daemon=True
  )
  ender.start()
  frames.write(answers, msgspec.msgpack.encode(hello))
  try:
    while True:
      frame = frames.read(requests)
      if frame is None:
        break
      request = msgspec.msgpack.decode(frame, type=Request)
      frames.write(answers, msgspec.msgpack.encode(judge.evaluate(request)))
  except (host_lib.HostError, frames.FrameError, OSError):
    if not ending.wait(0.1):  # else it is the end that makes the job fail
      raise
  ender.join()
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
