"""Runs a candidate that has failed once more under compute-sanitizer, for the
line and the threads of the fault. It changes what is said, never the status.

A launcher of its own, under the tool, does the job while this judge has the GPU
for itself. memcheck explains what the device has stopped, racecheck a wrong
answer (of shared memory it sees all; global memory is one allocation to it,
whose inside the guard zones of `image.py` look after). It sees a race in any
case, whoever came first there, so one of a timed call is looked for in the
small cases before the large one.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import msgspec

from kernels_eval.candidate import CUDA, Candidate
from kernels_eval.cpu.host import HostError
from kernels_eval.cuda import executor as executor_lib
from kernels_eval.cuda import jobs, own_kernels, sanitizer_log, timing
from kernels_eval.outcome import Stop
from kernels_eval.problems import spec
from kernels_eval.schema import Finding, Status

_PACKAGE_ROOT = pathlib.Path(__file__).parents[2]
_TOOLS = {Status.RUNTIME_ERROR: "memcheck", Status.WRONG_ANSWER: "racecheck"}
_LINE_INFO = ("--generate-line-info",)
_END_S = 10.0  # to write its log


def find() -> str | None:
  """The tool's path, or None where it is not installed."""
  from cuda import pathfinder

  return shutil.which("compute-sanitizer") or (
    pathfinder.find_nvidia_binary_utility("compute-sanitizer")
  )


class Sanitizer:
  """Explains failures, one at a time."""

  def __init__(
    self,
    tool: str,
    owner: executor_lib.CudaExecutor,
    seed: int,
    device: int,
    wall_s: float,
  ):
    """Args: the tool's path, the executor that met the failures, the judge's
    seed, index of the GPU, deadline of one run."""
    self._tool = tool
    self._executor = owner
    self._seed = seed
    self._device = device
    self._wall_s = wall_s
    self.log = ""  # what the tool printed when it was last asked

  def explain(
    self, stop: Stop, candidate: Candidate, problem: spec.Problem
  ) -> Finding | str | None:
    """What the tool finds in the failing case.

    Returns:
      The first finding; or one line that says that there is none, or why the
      tool has not looked; None for failures that it does not look at.
    """
    tool = _TOOLS.get(stop.status)
    if tool is None or stop.case is None or candidate.language != CUDA:
      return None
    self.log = ""
    found: list[Finding | None] = []  # one for each time that it was asked
    try:
      with self._executor.folder() as folder:
        artefact = self._executor.compile(
          candidate, problem, folder, _LINE_INFO
        )
        with self._executor.alone():
          for cases in _attempts(tool, stop.case, problem):
            if not any(found):
              self._look(tool, artefact, candidate, problem, cases, found)
      note = f"found nothing{sanitizer_log.last_words(self.log)}"
    except Stop as refusal:
      note = f"was not asked about this case: {refusal.message}"
    except (HostError, OSError) as error:  # no news about the candidate
      note = f"did not work: {error}"
      with contextlib.suppress(HostError):  # it says so to the next one
        self._executor.restart()
    finding = next(filter(None, found), None)
    if finding is None:
      return f"compute-sanitizer {tool} {note}"
    message = f"{finding.message} (compute-sanitizer {tool})"
    return msgspec.structs.replace(finding, message=message)

  def _look(self, tool, artefact, candidate, problem, cases, found):
    """Has the tool look at cases. Raises Stop where they cannot be run."""

    def ask(job, descriptor):
      report, self.log = self._run(tool, job, descriptor)
      found.append(sanitizer_log.read(self.log))
      if report.outcome == jobs.Outcome.MACHINE_FAILED:
        raise HostError(report.message)
      return report

    num_asked = len(found)
    try:
      self._executor.run_by(
        ask,
        artefact,
        candidate,
        problem,
        [(case, problem.make_inputs(case, self._seed)) for case in cases],
        _max_buffer_bytes(problem, cases),
      )
    except Stop:  # known already
      if len(found) == num_asked:
        raise

  def _run(self, tool, job, descriptor):
    """The report of a job that a launcher under the tool does, and the log."""
    with contextlib.ExitStack() as stack:
      log = stack.enter_context(self._executor.folder()) / "log"
      mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
      stack.enter_context(mine)
      with theirs:
        process = subprocess.Popen(
          command(self._tool, tool, log, theirs.fileno(), self._device),
          pass_fds=[theirs.fileno()],
          stdin=subprocess.DEVNULL,
          stdout=subprocess.DEVNULL,
          stderr=subprocess.DEVNULL,
          start_new_session=True,
          env={**os.environ, "PYTHONPATH": _search_path()},
        )
      stack.callback(_end, process)
      report = _do(mine, job, descriptor, self._wall_s)
      # The launcher ends, and the tool writes what it has seen.
      mine.shutdown(socket.SHUT_WR)
      with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_END_S)
      with contextlib.suppress(FileNotFoundError):
        return report, log.read_text("utf-8", "replace")
      return report, ""


def _is_timed(problem, case):
  return case.index >= len(problem.cases)


def _attempts(
  tool: str, failed: spec.Case, problem: spec.Problem
) -> Iterator[list[spec.Case]]:
  """The cases of one job after the other, until one finds something."""
  if tool == "racecheck" and _is_timed(problem, failed):
    yield list(problem.cases)
  yield [failed]


def _max_buffer_bytes(problem, cases):
  """None: as when the cases were judged."""
  if not _is_timed(problem, cases[0]):
    return None
  return timing.max_buffer_bytes(problem, cases[0].dims)


def command(
  path: str, tool: str, log: pathlib.Path, descriptor: int, device: int
) -> list[str]:
  """A launcher under the tool. Our own kernels are not looked at, those that a
  launcher tries at its start included: they would cost time, and a fault there
  is none of the candidate's. They are excluded by their whole names; a part of
  one would do for a candidate's `make_sum`, too."""
  own = [
    word
    for name in own_kernels.NAMES
    for word in ("--kernel-name-exclude", f"kernel_name={name}")
  ]
  return [
    *(path, "--tool", tool, "--log-file", str(log)),
    *("--target-processes", "application-only", "--show-backtrace", "device"),
    *own,
    *(sys.executable, "-P", "-m", "kernels_eval.cuda.sanitized_launcher"),
    *(str(descriptor), str(device), str(log.with_name("helpers"))),
  ]


def _search_path():
  path = os.environ.get("PYTHONPATH", "")
  return str(_PACKAGE_ROOT) + (os.pathsep + path if path else "")


def _do(link, job, descriptor, wall_s):
  link.settimeout(wall_s)
  hello = link.recv(jobs.MAX_MESSAGE_BYTES)
  if not hello:
    raise HostError("the launcher under compute-sanitizer ended")
  started = msgspec.msgpack.decode(hello, type=jobs.Hello | jobs.StartFailed)
  if isinstance(started, jobs.StartFailed):
    raise HostError(started.reason)
  socket.send_fds(link, [msgspec.msgpack.encode(job)], [descriptor])
  message = link.recv(jobs.MAX_MESSAGE_BYTES)
  if not message:  # the tool may end it with the fault
    return jobs.Report(jobs.Outcome.MACHINE_FAILED, "the launcher ended")
  return msgspec.msgpack.decode(message, type=jobs.Report)


def _end(process):
  with contextlib.suppress(ProcessLookupError):
    os.killpg(process.pid, signal.SIGKILL)
  process.wait()
