"""Compiles and runs candidates on the CPU. Trusted code; the candidate's own
runs in the sandboxed host's children."""

import contextlib
import dataclasses
import pathlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kernels_eval import sandbox
from kernels_eval.candidate import NUMBA, Candidate
from kernels_eval.cpu import (
  compile_log,
  failures,
  half_words,
  host_code,
  limits,
  protocol,
  toolchain,
  translate,
)
from kernels_eval.cpu import host as host_lib
from kernels_eval.cpu import run_cases as run_cases_lib
from kernels_eval.cpu.numba import build as numba_build
from kernels_eval.launch_plan import CandidateError, Launch
from kernels_eval.numba import client as numba_client
from kernels_eval.numba.messages import SOURCE_NAME as NUMBA_SOURCE_NAME
from kernels_eval.outcome import Stop
from kernels_eval.problems import spec
from kernels_eval.schema import Diagnostic, Status
from kernels_eval.settings import Settings

NAME = "cpu-fiber"

# Address space, most of it never touched: stacks, and records of accesses (30
# bytes for each byte of a buffer or a global variable).
_RUN_MAPPED_BYTES = 4 * 2**30
_RECORDS_FACTOR = 40
_SOURCE_NAMES = (translate.SOURCE_NAME, NUMBA_SOURCE_NAME)
_HALF_DTYPES = ("float16", "bfloat16")


@dataclasses.dataclass(frozen=True)
class Artefact:
  """A compiled candidate."""

  library: str
  entries: tuple[Launch, ...]


class Buffers(NamedTuple):
  """What buffers hold after all cases: bytes (uint8) by name, [case]."""

  outputs: list[dict[str, np.ndarray]]
  inputs: list[dict[str, np.ndarray]]


@dataclasses.dataclass(frozen=True)
class RunResult:
  """A run that came to its end, once or several times."""

  passes: tuple[Buffers, ...]
  shared_bytes: int | None  # static, of a block
  log: str
  num_registers: int | None = None  # of a thread
  local_bytes: int | None = None  # of a thread: spills and local arrays


class Executor:
  """Compiles and runs, one candidate at a time. Owns a host process."""

  name = NAME

  def name_for(self, language: str) -> str:
    """The executor's name in the record of a candidate."""
    return numba_build.NAME if language == NUMBA else NAME

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
    self._closed = False
    self._host = host_lib.Host(tools, protections, root)
    self._numba: numba_client.FrontEnd | None = None  # from the first one on

  def restart(self) -> None:
    """A new host after the old one failed; HostError if it does not come up."""
    self._host.close()
    self._close_numba()
    if self._closed:
      raise host_lib.HostError("the executor is closed")
    self._host = host_lib.Host(self._tools, self._protections, self._root)

  def close(self) -> None:
    """Ends the host and the job that it runs. Any thread may call it."""
    self._closed = True
    self._host.close()
    self._close_numba()

  def _close_numba(self):
    front_end, self._numba = self._numba, None
    if front_end is not None:
      front_end.close()

  @contextlib.contextmanager
  def _numba_front_end(self):
    """The Numba compiler; its faults become the machine's."""
    try:
      if self._numba is None:
        self._numba = numba_client.FrontEnd(self._protections, self._root)
      yield self._numba
    except (numba_client.ServerError, numba_client.UnavailableError) as error:
      raise host_lib.HostError(str(error)) from None

  @contextlib.contextmanager
  def folder(self) -> Iterator[pathlib.Path]:
    """A private folder, which is removed behind the evaluation."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="job-", dir=self._root))
    try:
      yield path
    finally:
      shutil.rmtree(path, ignore_errors=True)

  def compile(
    self, candidate: Candidate, problem: spec.Problem, folder: pathlib.Path
  ) -> Artefact:
    """Compiles and links.

    Raises:
      Stop: with the compiler's messages.
      host.HostError: a fault of the machine.
    """
    compile_object = (
      self._compile_numba if candidate.language == NUMBA else self._compile_cuda
    )
    launches = translate.entries(candidate)
    compile_object(candidate, problem, folder, launches)
    library = str(folder / "kernel.so")
    answer = self._host.command(
      self._tools.link_command("unit.o", library),
      str(folder),
      self._compile_limits(),
    )
    if not answer.ok:
      failures.check_machine(answer, "linker", folder, self._settings)
      raise compile_log.link_failure(answer.log)
    return Artefact(library, tuple(launches))

  def _compile_numba(self, candidate, problem, folder, launches):
    with self._numba_front_end() as front_end:
      contents = numba_build.compile_object(
        front_end, candidate, problem, launches, self._settings
      )
    (folder / "unit.o").write_bytes(contents)

  def _compile_limits(self):
    settings = self._settings
    return host_lib.Limits(
      settings.compile_wall_s,
      settings.compile_cpu_s,
      settings.compile_memory_bytes,
      settings.compile_file_bytes,
      num_processes=1,
    )

  def _compile_cuda(self, candidate, problem, folder, launches):
    try:
      unit = translate.translate(candidate, problem)
    except CandidateError as error:
      raise Stop(
        error.status,
        error.message,
        diagnostics=(Diagnostic("error", error.message, error.line, None),),
      ) from None
    # Non-UTF-8 cannot occur: the text came as str. Lone surrogates can.
    (folder / "unit.cpp").write_text(unit.text, "utf-8", "replace")
    job_limits = self._compile_limits()
    tensors = (*problem.inputs, *problem.outputs, *candidate.scratch)
    has_half = any(t.dtype in _HALF_DTYPES for t in tensors) or (
      half_words.needed(candidate.source)
    )
    for command in self._tools.compile_commands("unit.cpp", "unit.o", has_half):
      answer = self._host.command(command, str(folder), job_limits)
      if not answer.ok:
        failures.check_machine(answer, "compiler", folder, self._settings)
        raise compile_log.compile_failure(
          compile_log.read(answer.log), answer.log, candidate, problem, launches
        )
      host_code.check(answer, unit.device_lines)

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
    settings = self._settings
    run_cases = run_cases_lib.make(
      artefact.entries,
      candidate,
      problem,
      cases,
      max_buffer_bytes=settings.max_buffer_bytes,
      max_shared_bytes=limits.SHARED_BYTES,
    )
    _check_scratch(run_cases, settings)
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
        line = report.line or self._line_of(report.module_offset, artefact)
        case = cases[report.case_index][0]
        raise failures.run_failure(answer, report, line, case, settings)
      outputs, inputs = [], []
      for i, run_case in enumerate(run_cases):
        outputs.append({})
        inputs.append({})
        for j, buffer in enumerate(run_case.buffers):
          if buffer.role == protocol.OUTPUT:
            outputs[i][buffer.name] = mapping.contents(i, j)
          elif buffer.role == protocol.INPUT:
            inputs[i][buffer.name] = mapping.contents(i, j)
      return RunResult(
        (Buffers(outputs, inputs),), report.shared_bytes, report.log
      )
    finally:
      mapping.close()

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
      if name.endswith(_SOURCE_NAMES) and number.isdigit():
        return int(number) or None
    return None


def elapsed_ms(since: float) -> float:
  """Milliseconds since a `time.perf_counter()`."""
  return (time.perf_counter() - since) * 1000


def _check_scratch(run_cases, settings):
  """The records of accesses take 30 times the memory of what is touched."""
  total = sum(
    b.num_bytes
    for c in run_cases
    for b in c.buffers
    if b.role == protocol.SCRATCH
  )
  if total > settings.max_scratch_bytes:
    raise Stop(
      Status.CONTRACT_VIOLATION,
      f"scratch takes {total} bytes over all cases; at most "
      f"{settings.max_scratch_bytes}",
    )
