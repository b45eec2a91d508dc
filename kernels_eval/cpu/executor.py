"""Compiles and runs candidates on the CPU. Trusted code; the candidate's own
runs in the sandboxed host's children."""

import dataclasses
import os
import pathlib
import re
import shutil
import signal
import struct
import tempfile
import time

import numpy as np

from kernels_eval import dtypes, expressions, sandbox
from kernels_eval.candidate import Candidate, CandidateError, Launch
from kernels_eval.cpu import (
  compile_log,
  host_code,
  limits,
  outcome,
  protocol,
  toolchain,
  translate,
)
from kernels_eval.cpu import host as host_lib
from kernels_eval.cpu.outcome import Stop
from kernels_eval.problems import spec
from kernels_eval.schema import Diagnostic, Finding, Status

NAME = "cpu-fiber"

_STATUS_OF_FAULT = {
  "input_modified": Status.INTEGRITY_VIOLATION,
  "reserved_name": Status.INTEGRITY_VIOLATION,
  "shared_memory_limit": Status.COMPILE_ERROR,  # ptxas would refuse it
  "access_limit": Status.TIMEOUT,
  "load_failed": Status.COMPILE_ERROR,
}
# Address space, most of it never touched: stacks, and records of accesses (30
# bytes for each byte of a buffer or a global variable).
_RUN_MAPPED_BYTES = 4 * 2**30
_RECORDS_FACTOR = 40
_HALF = re.compile("half|bfloat|bf16")
_FREE_BYTES = 2**20  # less than this in the temporary folder is "full"


@dataclasses.dataclass(frozen=True)
class Settings:
  """Limits of one evaluation."""

  compile_wall_s: float = 30.0
  compile_cpu_s: float = 20.0
  compile_memory_bytes: int = 2 * 2**30
  compile_file_bytes: int = 64 * 2**20
  run_wall_s: float = 20.0
  run_cpu_s: float = 5.0
  max_buffer_bytes: int = 64 * 2**20
  access_limit: int = 200_000_000


@dataclasses.dataclass(frozen=True)
class Artefact:
  """A compiled candidate."""

  library: str
  entries: tuple[Launch, ...]


@dataclasses.dataclass(frozen=True)
class RunResult:
  """Buffers after a run that came to its end."""

  outputs: list[dict[str, np.ndarray]]  # [case], stored form
  inputs: list[dict[str, np.ndarray]]
  shared_bytes: int
  log: str


class Executor:
  """Compiles and runs, one candidate at a time. Owns a host process."""

  def __init__(
    self,
    tools: toolchain.Toolchain,
    protections: sandbox.Protections,
    root: pathlib.Path,
    settings: Settings,
  ):
    """Args: built parts, what the machine grants, an existing folder for
    temporary files, limits."""
    self._tools = tools
    self._protections = protections
    self._root = root
    self._settings = settings
    self._host = host_lib.Host(tools, protections, root)

  def restart(self) -> None:
    """A new host after the old one failed."""
    self._host.close()
    self._host = host_lib.Host(self._tools, self._protections, self._root)

  def close(self) -> None:
    """Ends the host."""
    self._host.close()

  def new_folder(self) -> pathlib.Path:
    """A private folder for one evaluation; the caller removes it."""
    return pathlib.Path(tempfile.mkdtemp(prefix="job-", dir=self._root))

  def compile(
    self, candidate: Candidate, problem: spec.Problem, folder: pathlib.Path
  ) -> Artefact:
    """Compiles and links.

    Raises:
      Stop: with the compiler's messages.
      host.HostError: a fault of the machine.
    """
    try:
      unit = translate.translate(candidate, problem)
    except CandidateError as error:
      raise Stop(
        error.status,
        error.message,
        diagnostics=(Diagnostic("error", error.message, error.line, None),),
      ) from None
    launches = translate.entries(candidate)
    # Non-UTF-8 cannot occur: the text came as str. Lone surrogates can.
    (folder / "unit.cpp").write_text(unit.text, "utf-8", "replace")
    settings = self._settings
    job_limits = host_lib.Limits(
      settings.compile_wall_s,
      settings.compile_cpu_s,
      settings.compile_memory_bytes,
      settings.compile_file_bytes,
      num_processes=1,
    )
    has_half = _HALF.search(unit.text) is not None
    for command in self._tools.compile_commands("unit.cpp", "unit.o", has_half):
      answer = self._host.command(command, str(folder), job_limits)
      if not answer.ok:
        self._check_limits(answer, "compiler", folder)
        raise compile_log.compile_failure(
          answer.log, candidate, problem, launches
        )
      host_code.check(answer.log, unit.device_lines)
    library = str(folder / "kernel.so")
    answer = self._host.command(
      self._tools.link_command("unit.o", library), str(folder), job_limits
    )
    if not answer.ok:
      self._check_limits(answer, "linker", folder)
      raise compile_log.link_failure(answer.log)
    return Artefact(library, tuple(launches))

  def _check_limits(self, answer, what, folder):
    """Raises where the program failed for a reason outside of the text."""
    if answer.outcome in (
      host_lib.Outcome.WALL_LIMIT,
      host_lib.Outcome.CPU_LIMIT,
    ):
      limit = self._settings.compile_cpu_s
      raise outcome.without_line(
        Status.TIMEOUT, f"the {what} did not end within {limit:g} s"
      )
    if answer.outcome == host_lib.Outcome.NOT_STARTED:
      raise host_lib.HostError(
        f"cannot fork for the {what} (errno {answer.code})"
      )
    if answer.outcome == host_lib.Outcome.EXITED and answer.code in (126, 127):
      raise host_lib.HostError(f"cannot run the {what}: {answer.log[:200]}")
    if answer.outcome == host_lib.Outcome.SIGNALLED:
      if answer.code == signal.SIGKILL:  # not ours: it has a cause of its own
        raise host_lib.HostError(f"something killed the {what}; out of memory?")
      if answer.code == signal.SIGXFSZ:
        limit = self._settings.compile_file_bytes
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
      raise host_lib.HostError(f"no space left for temporary files ({folder})")

  def run(
    self,
    artefact: Artefact,
    candidate: Candidate,
    problem: spec.Problem,
    cases: list[tuple[spec.Case, dict[str, np.ndarray]]],
  ) -> RunResult:
    """Runs every case in one child.

    Raises:
      Stop: with the finding of the run-time checks.
      host.HostError: a fault of the machine.
    """
    run_cases = [
      self._run_case(artefact, candidate, problem, case, arrays)
      for case, arrays in cases
    ]
    settings = self._settings
    total = sum(b.num_bytes for c in run_cases for b in c.buffers)
    if total > settings.max_buffer_bytes:
      raise Stop(
        Status.CONTRACT_VIOLATION,
        f"buffers and scratch take {total} bytes over all cases; at most "
        f"{settings.max_buffer_bytes}",
      )
    mapping = protocol.Mapping(
      run_cases,
      access_limit=settings.access_limit,
      static_shared_limit_bytes=limits.STATIC_SHARED_BYTES,
    )
    try:
      job_limits = host_lib.Limits(
        settings.run_wall_s,
        settings.run_cpu_s,
        _RUN_MAPPED_BYTES + _RECORDS_FACTOR * mapping.num_bytes,
        file_bytes=1,
        num_processes=1,
      )
      answer = self._host.run(artefact.library, mapping.fd, job_limits)
      report = mapping.report()
      if report.state != protocol.FINISHED or not answer.ok:
        raise self._run_failure(answer, report, artefact, cases)
      outputs, inputs = [], []
      for i, run_case in enumerate(run_cases):
        outputs.append({})
        inputs.append({})
        for j, buffer in enumerate(run_case.buffers):
          if buffer.role == protocol.OUTPUT:
            outputs[i][buffer.name] = mapping.contents(i, j)
          elif buffer.role == protocol.INPUT:
            inputs[i][buffer.name] = mapping.contents(i, j)
      return RunResult(outputs, inputs, report.shared_bytes, report.log)
    finally:
      mapping.close()

  def _run_case(self, artefact, candidate, problem, case, arrays):
    buffers, place = [], {}
    for role, tensors in (
      (protocol.INPUT, problem.inputs),
      (protocol.OUTPUT, problem.outputs),
      (protocol.SCRATCH, candidate.scratch),
    ):
      for tensor in tensors:
        try:
          shape = tensor.shape_for(case.dims)
        except expressions.ExpressionError as error:
          raise Stop(
            Status.CONTRACT_VIOLATION, f"scratch `{tensor.name}`: {error}"
          ) from None
        if any(n < 0 for n in shape):
          raise Stop(
            Status.CONTRACT_VIOLATION,
            f"scratch `{tensor.name}` has a negative size for {case}",
          )
        dtype = dtypes.DTYPES[tensor.dtype]
        num_bytes = dtype.item_bytes
        for n in shape:
          num_bytes *= n
        if num_bytes > self._settings.max_buffer_bytes:
          raise Stop(
            Status.CONTRACT_VIOLATION,
            f"scratch `{tensor.name}` takes {num_bytes} bytes for {case}; at "
            f"most {self._settings.max_buffer_bytes}",
          )
        place[tensor.name] = len(buffers)
        buffers.append(
          protocol.RunBuffer(
            tensor.name,
            role,
            num_bytes,
            dtype.item_bytes,
            arrays.get(tensor.name) if role == protocol.INPUT else None,
          )
        )
    keys = [(e.kernel, e.template, e.arguments) for e in artefact.entries]
    launches = []
    for launch in candidate.launches:
      entry = keys.index((launch.kernel, launch.template, launch.arguments))
      arguments = [
        ("buffer", place[name])
        if name in place
        else ("bits", _scalar_bits(name, case))
        for name in launch.arguments
      ]
      launches.append(limits.plan_launch(launch, entry, case.dims, arguments))
    return protocol.RunCase(tuple(buffers), tuple(launches))

  def _run_failure(self, answer, report, artefact, cases):
    case = cases[report.case_index][0]
    log = report.log
    if report.state == protocol.FAULTED:
      line = report.line or self._line_of(report.module_offset, artefact)
      finding = Finding(
        report.fault, report.text, line, report.thread, report.block
      )
      status = _STATUS_OF_FAULT.get(report.fault, Status.RUNTIME_ERROR)
      place = f"line {line}: " if line else ""
      return Stop(
        status, f"{place}{report.text}", finding=finding, case=case, log=log
      )
    ended = answer.outcome
    if ended in (host_lib.Outcome.CPU_LIMIT, host_lib.Outcome.WALL_LIMIT):
      limit = (
        self._settings.run_cpu_s
        if ended == host_lib.Outcome.CPU_LIMIT
        else self._settings.run_wall_s
      )
      return Stop(
        Status.TIMEOUT,
        f"the kernel did not end within {limit:g} s",
        case=case,
        log=log,
      )
    if ended == host_lib.Outcome.NOT_STARTED:
      raise host_lib.HostError(f"cannot fork (errno {answer.code})")
    if not answer.started:
      raise host_lib.HostError(
        f"the run did not start ({ended.name.lower()} {answer.code}): "
        f"{answer.log[:200]}"
      )
    if ended == host_lib.Outcome.SIGNALLED and answer.code == signal.SIGKILL:
      raise host_lib.HostError("something killed the run; out of memory?")
    if ended == host_lib.Outcome.SIGNALLED and answer.code == signal.SIGSYS:
      return Stop(
        Status.INTEGRITY_VIOLATION,
        "the kernel made a system call",
        case=case,
        log=log,
      )
    how = (
      f"signal {answer.code}"
      if ended == host_lib.Outcome.SIGNALLED
      else f"exit status {answer.code} without a result"
    )
    return Stop(
      Status.RUNTIME_ERROR,
      f"the kernel's process ended: {how}",
      case=case,
      log=log,
    )

  def _line_of(self, offset, artefact):
    """The candidate's line behind an address, through all inlined calls."""
    if not offset:
      return None
    answer = self._host.command(
      [
        self._tools.line_resolver,
        "-i",
        "-e",
        artefact.library,
        hex(offset),
      ],
      str(self._root),
      host_lib.Limits(10, 5, 2**30, 2**20, 4),
    )
    if not answer.ok:
      return None
    for line in answer.log.splitlines():
      name, _, number = line.split(" ")[0].rpartition(":")
      if name.endswith(translate.SOURCE_NAME) and number.isdigit():
        return int(number) or None
    return None


def _scalar_bits(name, case):
  if name in case.scalars:
    return struct.unpack("<I", struct.pack("<f", case.scalars[name]))[0]
  return case.dims[name] & 0xFFFFFFFF


def remove_folder(folder: pathlib.Path) -> None:
  """Removes an evaluation's files."""
  shutil.rmtree(folder, ignore_errors=True)


def elapsed_ms(since: float) -> float:
  """Milliseconds since a `time.perf_counter()`."""
  return (time.perf_counter() - since) * 1000
