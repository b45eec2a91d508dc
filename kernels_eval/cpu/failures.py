"""Why a compiler or a run has failed: the text, a limit, or the machine."""

import os
import pathlib
import signal

from kernels_eval import outcome
from kernels_eval.cpu import host, protocol
from kernels_eval.outcome import Stop
from kernels_eval.problems import spec
from kernels_eval.schema import Finding, Status
from kernels_eval.settings import Settings

_STATUS_OF_FAULT = {
  "input_modified": Status.INTEGRITY_VIOLATION,
  "reserved_name": Status.INTEGRITY_VIOLATION,
  "shared_memory_limit": Status.COMPILE_ERROR,  # ptxas would refuse it
  "access_limit": Status.TIMEOUT,
  "load_failed": Status.COMPILE_ERROR,
}
_LEAST_SHARE = 0.5  # of the processor time that a limit allows
_FREE_BYTES = 2**20  # less than this in the temporary folder is "full"


def limit_reached(
  answer: host.Answer, what: str, wall_s: float, cpu_s: float
) -> float | None:
  """Seconds of the limit that ended a job, None if none did.

  What runs under limits cannot wait for anything: a compiler has no cause to,
  kernels and Python functions no system call that does. One that has had little
  processor time when its wall time is over has been kept from running.

  Args:
    answer: how the job ended.
    what: its name in a message.
    wall_s: limit on its time.
    cpu_s: limit on its processor time.

  Raises:
    HostError: it has been kept from running.
  """
  if answer.outcome == host.Outcome.CPU_LIMIT:
    return cpu_s
  if answer.outcome != host.Outcome.WALL_LIMIT:
    return None
  if answer.cpu_ms < _LEAST_SHARE * 1000 * min(wall_s, cpu_s):
    raise host.HostError(
      f"the machine is too busy: in {wall_s:g} s the {what} got "
      f"{answer.cpu_ms / 1000:.2g} s of processor time"
    )
  return wall_s


def check_machine(
  answer: host.Answer, what: str, folder: pathlib.Path, settings: Settings
) -> None:
  """Looks for a reason outside of the text why a compiler has failed.

  Args:
    answer: how it ended.
    what: compiler or linker.
    folder: its working folder, which is emptied.
    settings: limits of the evaluation.

  Raises:
    Stop: a limit was reached.
    HostError: a fault of the machine.
  """
  limit_s = limit_reached(
    answer, what, settings.compile_wall_s, settings.compile_cpu_s
  )
  if limit_s is not None:
    raise outcome.without_line(
      Status.TIMEOUT, f"the {what} did not end within {limit_s:g} s"
    )
  if answer.outcome == host.Outcome.NOT_STARTED:
    raise host.HostError(f"cannot fork for the {what} (errno {answer.code})")
  if answer.outcome == host.Outcome.EXITED and answer.code in (126, 127):
    raise host.HostError(f"cannot run the {what}: {answer.log[:200]}")
  if answer.outcome == host.Outcome.SIGNALLED:
    if answer.code == signal.SIGKILL:  # not ours: it has a cause of its own
      raise host.HostError(f"something killed the {what}; out of memory?")
    if answer.code == signal.SIGXFSZ:
      limit = settings.compile_file_bytes
      raise outcome.without_line(
        Status.COMPILE_ERROR, f"the {what}'s output exceeds {limit} bytes"
      )
  # A full disk is found by looking, not by reading the log: a candidate can
  # print anything there. Its own files do not count.
  for path in folder.iterdir():
    path.unlink()
  space = os.statvfs(folder)
  no_names = space.f_files and not space.f_favail
  if space.f_bavail * space.f_frsize < _FREE_BYTES or no_names:
    raise host.HostError(f"no space left for temporary files ({folder})")


def run_failure(
  answer: host.Answer,
  report: protocol.Report,
  line: int | None,
  case: spec.Case,
  settings: Settings,
) -> Stop:
  """The outcome of a run that did not come to its end.

  Args:
    answer: how the process ended. This is a fact.
    report: what it has left behind, which a candidate may have forged.
    line: of the candidate, where the report names an address.
    case: the case that ran.
    settings: limits of the evaluation.

  Raises:
    HostError: a fault of the machine.
  """
  log = report.log
  if report.state == protocol.FAULTED and not answer.started:
    raise host.HostError(f"the run did not start: {report.text}")
  if report.state == protocol.FAULTED:
    finding = Finding(
      report.fault, report.text, line, report.thread, report.block
    )
    status = _STATUS_OF_FAULT.get(report.fault, Status.RUNTIME_ERROR)
    place = f"line {line}: " if line else ""
    return Stop(
      status, f"{place}{report.text}", finding=finding, case=case, log=log
    )
  ended = answer.outcome
  limit_s = limit_reached(
    answer, "kernel", settings.run_wall_s, settings.run_cpu_s
  )
  if limit_s is not None:
    return Stop(
      Status.TIMEOUT,
      f"the kernel did not end within {limit_s:g} s",
      case=case,
      log=log,
    )
  if ended == host.Outcome.NOT_STARTED:
    raise host.HostError(f"cannot fork (errno {answer.code})")
  if not answer.started:
    raise host.HostError(
      f"the run did not start ({ended.name.lower()} {answer.code}): "
      f"{answer.log[:200]}"
    )
  if ended == host.Outcome.SIGNALLED and answer.code == signal.SIGKILL:
    raise host.HostError("something killed the run; out of memory?")
  if ended == host.Outcome.SIGNALLED and answer.code == signal.SIGSYS:
    return Stop(
      Status.INTEGRITY_VIOLATION,
      "the kernel made a system call",
      case=case,
      log=log,
    )
  how = (
    f"signal {answer.code}"
    if ended == host.Outcome.SIGNALLED
    else f"exit status {answer.code} without a result"
  )
  return Stop(
    Status.RUNTIME_ERROR,
    f"the kernel's process ended: {how}",
    case=case,
    log=log,
  )
