"""Compiles and runs candidates on the CPU. Trusted code; the candidate's own
runs in the sandboxed host's children."""

import dataclasses
import pathlib
import re
import shutil
import struct
import tempfile
import time

import numpy as np

from kernels_eval import dtypes, expressions, sandbox
from kernels_eval.candidate import Candidate, CandidateError, Launch
from kernels_eval.cpu import host as host_lib
from kernels_eval.cpu import protocol, toolchain, translate
from kernels_eval.problems import spec
from kernels_eval.schema import Diagnostic, Finding, Status

NAME = "cpu-fiber"

# Limits of the hardware that the executor stands in for (compute capability
# 8.0 and up: the smallest opt-in limit on shared memory is 99 KiB).
MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
STATIC_SHARED_BYTES = 48 * 1024
SHARED_BYTES = 99 * 1024

_DIAGNOSTIC = re.compile(
  r"^(?P<file>[^:\n]+):(?:(?P<line>\d+):)?(?:(?P<column>\d+):)? "
  r"(?P<severity>fatal error|error|note|warning): (?P<message>.*)$",
  re.M,
)
_UNDEFINED = re.compile(
  r"(?:kernel\.cu:(\d+): )?undefined reference to `([^']*)'"
)
_MARKER = re.compile(r"KE_(COUNT|TYPE) (\d+)(?: (\d+))?")

_STATUS_OF_FAULT = {
  "input_modified": Status.INTEGRITY_VIOLATION,
  "shared_memory_limit": Status.COMPILE_ERROR,  # ptxas would refuse it
  "access_limit": Status.TIMEOUT,
  "load_failed": Status.COMPILE_ERROR,
}


@dataclasses.dataclass(frozen=True)
class Settings:
  """Limits of one evaluation."""

  compile_wall_s: float = 30.0
  compile_cpu_s: float = 20.0
  compile_memory_bytes: int = 2 * 2**30
  compile_file_bytes: int = 64 * 2**20
  run_wall_s: float = 20.0
  run_cpu_s: float = 5.0
  run_memory_bytes: int = 3 * 2**30
  run_file_bytes: int = 2**20
  max_buffer_bytes: int = 256 * 2**20
  access_limit: int = 200_000_000


class Stop(Exception):
  """The evaluation ends here, with this outcome."""

  def __init__(
    self,
    status: Status,
    message: str,
    *,
    diagnostics: tuple[Diagnostic, ...] = (),
    finding: Finding | None = None,
    case: spec.Case | None = None,
    log: str = "",
  ):
    super().__init__(message)
    self.status = status
    self.message = message
    self.diagnostics = diagnostics
    self.finding = finding
    self.case = case
    self.log = log


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


def _launch_limit(what, got, limit, launch):
  return Stop(
    Status.LAUNCH_ERROR,
    f"`{launch.kernel}`: {what} is {got}; the limit is {limit}",
  )


def plan_launch(
  launch: Launch, entry: int, dims: dict[str, int], arguments
) -> protocol.RunLaunch:
  """Numbers for a launch, checked against the limits of the hardware.

  Raises:
    Stop: LAUNCH_ERROR with the arithmetic, or CONTRACT_VIOLATION.
  """
  try:
    grid = tuple(expressions.evaluate(e, dims) for e in launch.grid)
    block = tuple(expressions.evaluate(e, dims) for e in launch.block)
    shared = expressions.evaluate(launch.shared, dims)
  except expressions.ExpressionError as error:
    raise Stop(
      Status.CONTRACT_VIOLATION,
      f"launch plan of `{launch.kernel}`: {error}",
    ) from None
  for axis, n, limit in zip("xyz", block, MAX_BLOCK, strict=True):
    if n < 1 or n > limit:
      raise _launch_limit(f"block.{axis}", n, f"1 to {limit}", launch)
  for axis, n, limit in zip("xyz", grid, MAX_GRID, strict=True):
    if n < 1 or n > limit:
      raise _launch_limit(f"grid.{axis}", n, f"1 to {limit}", launch)
  threads = block[0] * block[1] * block[2]
  if threads > MAX_THREADS:
    raise _launch_limit(
      "the block",
      f"{block[0]} x {block[1]} x {block[2]} = {threads} threads",
      f"{MAX_THREADS}",
      launch,
    )
  if shared < 0 or shared > SHARED_BYTES:
    raise _launch_limit(
      "dynamic shared memory", f"{shared} bytes", f"{SHARED_BYTES}", launch
    )
  return protocol.RunLaunch(entry, grid, block, shared, tuple(arguments))


def _diagnostics(log):
  """Messages at the candidate's lines, each once, and the markers of ours."""
  found, markers, seen = [], [], set()
  for match in _DIAGNOSTIC.finditer(log):
    message = match["message"]
    marker = _MARKER.search(message)
    if marker:
      markers.append(marker)
      continue
    severity = match["severity"].replace("fatal ", "")
    inside = match["file"] == translate.SOURCE_NAME
    line = int(match["line"]) if inside and match["line"] else None
    column = int(match["column"]) if inside and match["column"] else None
    if (message, line) in seen or severity == "warning":
      continue
    seen.add((message, line))
    found.append((match["file"], Diagnostic(severity, message, line, column)))
  return found, markers


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
    (folder / translate.SOURCE_NAME).write_text(unit, "utf-8", "replace")
    settings = self._settings
    limits = host_lib.Limits(
      settings.compile_wall_s,
      settings.compile_cpu_s,
      settings.compile_memory_bytes,
      settings.compile_file_bytes,
      num_processes=64,
    )
    answer = self._host.command(
      self._tools.compile_command(translate.SOURCE_NAME, "unit.o"),
      str(folder),
      limits,
    )
    if not answer.ok:
      raise self._compile_failure(answer, candidate, problem, launches)
    library = str(folder / "kernel.so")
    answer = self._host.command(
      self._tools.link_command("unit.o", library), str(folder), limits
    )
    if not answer.ok:
      raise self._link_failure(answer)
    return Artefact(library, tuple(launches))

  def _limit_failure(self, answer, what):
    if answer.outcome in (
      host_lib.Outcome.WALL_LIMIT,
      host_lib.Outcome.CPU_LIMIT,
    ):
      limit = self._settings.compile_cpu_s
      return Stop(Status.TIMEOUT, f"the {what} did not end within {limit:g} s")
    if answer.outcome == host_lib.Outcome.NOT_STARTED:
      raise host_lib.HostError(
        f"cannot fork for the {what} (errno {answer.code})"
      )
    return None

  def _compile_failure(self, answer, candidate, problem, launches):
    limit = self._limit_failure(answer, "compiler")
    if limit:
      return limit
    if answer.outcome == host_lib.Outcome.EXITED and answer.code in (126, 127):
      raise host_lib.HostError(f"cannot run the compiler: {answer.log[:200]}")
    found, markers = _diagnostics(answer.log)
    for marker in markers:
      launch = launches[int(marker[2])]
      return self._signature_failure(marker, launch, candidate, problem)
    outside = [d for f, d in found if f == translate.TRAILER_NAME]
    diagnostics = tuple(d for f, d in found if f == translate.SOURCE_NAME)
    errors = [d for d in diagnostics if d.severity == "error"]
    if not errors and any(d.severity == "error" for d in outside):
      launch = launches[0]
      return Stop(
        Status.CONTRACT_VIOLATION,
        f"kernel `{launch.kernel}` cannot be launched: "
        f"{next(d.message for d in outside if d.severity == 'error')}",
      )
    if errors:
      first = errors[0]
      return Stop(
        Status.COMPILE_ERROR,
        f"line {first.line}: {first.message}",
        diagnostics=diagnostics[:8],
      )
    if "memory exhausted" in answer.log or "out of memory" in answer.log:
      text = "the compiler ran out of memory on this text"
    else:
      lines = [x for x in answer.log.splitlines() if x.strip()]
      text = f"the compiler failed: {(lines or ['no message'])[-1][:300]}"
    return Stop(
      Status.COMPILE_ERROR,
      text,
      diagnostics=(Diagnostic("error", text, None, None),),
    )

  def _signature_failure(self, marker, launch, candidate, problem):
    types = [
      translate.parameter_type(a, problem, candidate.scratch)
      for a in launch.arguments
    ]
    wanted = ", ".join(
      f"{t} {a}" for t, a in zip(types, launch.arguments, strict=True)
    )
    if marker[1] == "COUNT":
      what = f"kernel `{launch.kernel}` must take {len(types)} parameters"
    else:
      i = int(marker[3])
      what = (
        f"kernel `{launch.kernel}`: parameter {i + 1} must be "
        f"`{types[i]} {launch.arguments[i]}`"
      )
    return Stop(Status.CONTRACT_VIOLATION, f"{what}; it is given ({wanted})")

  def _link_failure(self, answer):
    limit = self._limit_failure(answer, "linker")
    if limit:
      return limit
    match = _UNDEFINED.search(answer.log)
    if match:
      name = match[2]
      line = int(match[1]) if match[1] else None
      text = f"`{name}` is not defined; a kernel cannot call the C library"
      return Stop(
        Status.COMPILE_ERROR,
        text if line is None else f"line {line}: {text}",
        diagnostics=(Diagnostic("error", text, line, None),),
      )
    lines = [x for x in answer.log.splitlines() if x.strip()]
    text = f"the linker failed: {(lines or ['no message'])[-1][:300]}"
    return Stop(
      Status.COMPILE_ERROR,
      text,
      diagnostics=(Diagnostic("error", text, None, None),),
    )

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
      static_shared_limit_bytes=STATIC_SHARED_BYTES,
    )
    try:
      limits = host_lib.Limits(
        settings.run_wall_s,
        settings.run_cpu_s,
        settings.run_memory_bytes + 8 * mapping.num_bytes,
        settings.run_file_bytes,
        num_processes=0,
      )
      answer = self._host.run(artefact.library, mapping.fd, limits)
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
      launches.append(plan_launch(launch, entry, case.dims, arguments))
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
    outcome = answer.outcome
    if outcome in (host_lib.Outcome.CPU_LIMIT, host_lib.Outcome.WALL_LIMIT):
      limit = (
        self._settings.run_cpu_s
        if outcome == host_lib.Outcome.CPU_LIMIT
        else self._settings.run_wall_s
      )
      return Stop(
        Status.TIMEOUT,
        f"the kernel did not end within {limit:g} s",
        case=case,
        log=log,
      )
    if outcome == host_lib.Outcome.NOT_STARTED:
      raise host_lib.HostError(f"cannot fork (errno {answer.code})")
    if outcome == host_lib.Outcome.SIGNALLED and answer.code == 31:  # SIGSYS
      return Stop(
        Status.INTEGRITY_VIOLATION,
        "the kernel made a system call",
        case=case,
        log=log,
      )
    if report.state == protocol.NOT_STARTED:
      raise host_lib.HostError(
        f"the run did not start ({outcome.name.lower()} {answer.code}): "
        f"{answer.log[:200]}"
      )
    how = (
      f"signal {answer.code}"
      if outcome == host_lib.Outcome.SIGNALLED
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
