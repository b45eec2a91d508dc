"""From a Numba module to IR or PTX, and what it means when there is none.

A GPU executor starts a `client.FrontEnd` with output "ptx" and calls
`compile_kernels`; the PTX of each kernel is complete (libdevice and half
precision are in it), its entry is `Code.symbol`, and an array among its
parameters is `signature.array_words`.
"""

import signal
from collections.abc import Sequence

from kernels_eval import outcome
from kernels_eval import source as source_lib
from kernels_eval.candidate import MAX_SOURCE_BYTES, Candidate
from kernels_eval.launch_plan import Launch
from kernels_eval.numba import client, signature
from kernels_eval.numba.messages import (
  FAILED,
  Answer,
  Compiled,
  CompileJob,
  Kernel,
  Limits,
  Outcome,
  Refusal,
)
from kernels_eval.outcome import Stop
from kernels_eval.problems import spec
from kernels_eval.schema import Diagnostic, Status
from kernels_eval.settings import Settings

_MAX_MESSAGE = 600
_RESULT_BYTES = 6 * 2**20  # below the limit of a frame
_STATUS = {
  "contract": Status.CONTRACT_VIOLATION,
  "compile": Status.COMPILE_ERROR,
  "unsupported": Status.COMPILE_ERROR,
  "integrity": Status.INTEGRITY_VIOLATION,
}


def limits_of(settings: Settings) -> Limits:
  """Of a compile job."""
  return Limits(
    settings.compile_wall_s,
    settings.compile_cpu_s,
    settings.compile_memory_bytes // 2,
    _RESULT_BYTES,
  )


def _one_line(text):
  """What a candidate may have written, fit to be shown."""
  return source_lib.printable(" ".join(text[:_MAX_MESSAGE].split()))


def _refused(refusal: Refusal) -> Stop:
  status = _STATUS.get(refusal.kind, Status.INTEGRITY_VIOLATION)
  message = _one_line(refusal.message)
  line = refusal.line
  if line is not None and not 0 < line <= MAX_SOURCE_BYTES:
    line = None
  place = f"line {line}: " if line else ""
  return Stop(
    status,
    f"{place}{message}",
    diagnostics=(Diagnostic("error", message, line, None),),
  )


def _ended(answer: Answer, settings: Settings) -> Stop:
  """Why a job's process has left no result."""
  if answer.outcome in (Outcome.WALL_LIMIT, Outcome.CPU_LIMIT):
    return outcome.without_line(
      Status.TIMEOUT,
      f"the module or its compilation did not end within "
      f"{settings.compile_cpu_s:g} s",
    )
  last = _one_line((answer.log.strip().splitlines() or [""])[-1])
  if answer.outcome == Outcome.SIGNALLED:
    if answer.code == signal.SIGKILL:
      raise client.ServerError("something killed the compiler; out of memory?")
    if answer.code == signal.SIGSYS:
      return outcome.without_line(
        Status.INTEGRITY_VIOLATION,
        "the module made a system call that no kernel needs",
      )
    if answer.code == signal.SIGXFSZ:
      return outcome.without_line(
        Status.COMPILE_ERROR,
        f"the compiler's output exceeds {_RESULT_BYTES} bytes",
      )
    return outcome.without_line(
      Status.COMPILE_ERROR,
      f"the compiler ended with signal {answer.code}: {last}",
    )
  if answer.code == FAILED:
    return outcome.without_line(
      Status.COMPILE_ERROR, f"the compiler failed: {last}"
    )
  return outcome.without_line(
    Status.INTEGRITY_VIOLATION,
    f"the module ended the compiler (exit status {answer.code}) or changed "
    "its result",
  )


def result_of(answer: Answer, expected: type, settings: Settings):
  """The result of a job, of the expected type.

  Raises:
    Stop: a refusal, or the process ended otherwise.
    client.ServerError: a fault of the machine.
  """
  if answer.outcome == Outcome.EXITED and answer.code == 0:
    result = client.decode(answer.result)
    if isinstance(result, expected):
      return result
    if isinstance(result, Refusal):
      raise _refused(result)
  raise _ended(answer, settings)


def kernels_of(
  launches: Sequence[Launch], candidate: Candidate, problem: spec.Problem
) -> tuple[Kernel, ...]:
  """What the front end is asked for, one for each launch."""
  return tuple(
    Kernel(
      launch.kernel,
      tuple(
        (p.dtype, p.ndim)
        for p in (
          signature.parameter(a, problem, candidate.scratch)
          for a in launch.arguments
        )
      ),
    )
    for launch in launches
  )


def compile_kernels(
  front_end: client.FrontEnd,
  source: str,
  kernels: Sequence[Kernel],
  output: str,
  compute_capability: tuple[int, int],
  settings: Settings,
) -> Compiled:
  """Runs the module in the sandbox and compiles its kernels.

  Args:
    front_end: a running compile server.
    source: the candidate's module.
    kernels: functions and their parameters.
    output: "ir" (LLVM, for the CPU) or "ptx".
    compute_capability: of the device that PTX is for.
    settings: limits.

  Raises:
    Stop, client.ServerError.
  """
  # Half of a surrogate pair is no text.
  source = source.encode("utf-8", "replace").decode()
  distinct = tuple(dict.fromkeys(kernels))
  job = CompileJob(
    source, distinct, compute_capability, output, limits_of(settings)
  )
  compiled = result_of(front_end.ask(job), Compiled, settings)
  if len(compiled.kernels) != len(distinct):
    raise outcome.without_line(
      Status.INTEGRITY_VIOLATION, "the module changed the compiler's result"
    )
  codes = dict(zip(distinct, compiled.kernels, strict=True))
  return Compiled(tuple(codes[k] for k in kernels), compiled.shared_names)
