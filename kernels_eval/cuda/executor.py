"""Compiles candidates with NVRTC in the sandbox and has them run on a GPU."""

import contextlib
import os
import pathlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from kernels_eval import sandbox
from kernels_eval.candidate import NUMBA, Candidate
from kernels_eval.cpu import host as host_lib
from kernels_eval.cpu import protocol, toolchain
from kernels_eval.cpu import run_cases as run_cases_lib
from kernels_eval.cpu import translate as shared_translate
from kernels_eval.cpu.executor import Buffers, RunResult
from kernels_eval.cuda import build, connection, image, jobs, toolkit
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.numba import build as numba_build
from kernels_eval.numba import client as numba_client
from kernels_eval.outcome import Stop
from kernels_eval.problems import spec
from kernels_eval.schema import Diagnostic, Finding, Status
from kernels_eval.settings import Settings

NAME = "cuda"
_KIND = {  # of a finding, by the driver's error
  "CUDA_ERROR_ILLEGAL_ADDRESS": "bad_address",
  "CUDA_ERROR_INVALID_ADDRESS_SPACE": "bad_address",
  "CUDA_ERROR_MISALIGNED_ADDRESS": "misaligned",
  "CUDA_ERROR_HARDWARE_STACK_ERROR": "stack_overflow",
  "CUDA_ERROR_ASSERT": "assertion_failed",
}


class CudaExecutor:
  """Compiles and runs, one candidate at a time. Owns a host process and a
  connection to the server of its GPU."""

  name = NAME

  def __init__(
    self,
    tools: toolchain.Toolchain,
    kit: toolkit.Toolkit,
    protections: sandbox.Protections,
    root: pathlib.Path,
    server: pathlib.Path,
    settings: Settings,
    cuda_settings: CudaSettings,
  ):
    """Args: built parts, NVRTC, what the machine grants, an existing folder for
    temporary files, the server's socket, limits.

    Raises:
      HostError: no usable GPU or no sandbox.
    """
    self._tools = tools
    self._kit = kit
    self._protections = protections
    self._root = root
    self._server = server
    self._settings = settings
    self._cuda_settings = cuda_settings
    self._closed = False
    self._numba: numba_client.FrontEnd | None = None
    self._connection = connection.Connection(server)
    self._host = self._start_host()

  def _start_host(self):
    return host_lib.Host(
      self._tools,
      self._protections,
      self._root,
      nvrtc=self._kit.nvrtc,
      nvjitlink=self._kit.nvjitlink,
      readable=[
        *map(str, self._kit.include),
        str(pathlib.Path(shared_translate.__file__).parent / "native"),
      ],
    )

  def name_for(self, language: str) -> str:
    """The executor's name in the record of a candidate."""
    del language
    return NAME

  @property
  def _run_wall_s(self):
    return self._settings.run_cpu_s + self._cuda_settings.load_wall_s

  @property
  def device(self) -> jobs.Hello:
    """What the GPU is."""
    return self._connection.hello

  def restart(self) -> None:
    """Everything anew after a fault; HostError if it does not come up."""
    self._host.close()
    self._close_numba()
    self._reconnect()
    self._host = self._start_host()

  def close(self) -> None:
    """Ends the host and hangs up. Any thread may call it."""
    self._closed = True
    self._host.close()
    self._close_numba()
    self._connection.close()

  def _close_numba(self):
    front_end, self._numba = self._numba, None
    if front_end is not None:
      front_end.close()

  @contextlib.contextmanager
  def folder(self) -> Iterator[pathlib.Path]:
    """A folder that is removed behind the evaluation."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="job-", dir=self._root))
    try:
      yield path
    finally:
      shutil.rmtree(path, ignore_errors=True)

  def compile(
    self,
    candidate: Candidate,
    problem: spec.Problem,
    folder: pathlib.Path,
    options: Sequence[str] = (),
  ) -> build.Artefact:
    """Compiles for the device.

    Args:
      candidate: its text.
      problem: its problem.
      folder: an empty one, for this job.
      options: further ones of NVRTC.

    Raises:
      Stop: with the compiler's messages.
      HostError: a fault of the machine.
    """
    launches = shared_translate.entries(candidate)
    if candidate.language == NUMBA:
      return self._compile_numba(candidate, problem, launches, folder)
    return build.compile_cuda(
      self._host,
      self._kit,
      self.device.compute_capability,
      candidate,
      problem,
      launches,
      folder,
      self._settings,
      self._cuda_settings,
      options,
    )

  def _compile_numba(self, candidate, problem, launches, folder):
    try:
      if self._numba is None:
        self._numba = numba_client.FrontEnd(
          self._protections, self._root, "ptx"
        )
      compiled = numba_build.compile_kernels(
        self._numba,
        candidate.source,
        numba_build.kernels_of(launches, candidate, problem),
        "ptx",
        self.device.compute_capability,
        self._settings,
      )
    except (numba_client.ServerError, numba_client.UnavailableError) as error:
      raise host_lib.HostError(str(error)) from None
    return build.assemble(
      self._host,
      self._kit,
      self.device.compute_capability,
      ["\n".join(kernel.texts) for kernel in compiled.kernels],
      [kernel.symbol for kernel in compiled.kernels],
      launches,
      folder,
      self._settings,
      self._cuda_settings,
    )

  def run(
    self,
    artefact: build.Artefact,
    candidate: Candidate,
    problem: spec.Problem,
    cases: list[tuple[spec.Case, dict[str, np.ndarray]]],
  ) -> RunResult:
    """Runs every case, once for each pattern of unwritten memory.

    Raises:
      Stop: the driver or a guard zone speaks against the candidate.
      HostError: a fault of the machine.
    """
    return self.run_by(
      self._connection.ask, artefact, candidate, problem, cases
    )

  def run_by(
    self,
    ask: Callable[[jobs.Run, int], jobs.Report],
    artefact: build.Artefact,
    candidate: Candidate,
    problem: spec.Problem,
    cases: list[tuple[spec.Case, dict[str, np.ndarray]]],
    max_buffer_bytes: int | None = None,
  ) -> RunResult:
    """As `run`, where `ask` has a launcher do the job with its mapping, and
    buffers may take other than the settings' bytes (None: those)."""
    run_cases = run_cases_lib.make(
      artefact.entries,
      candidate,
      problem,
      cases,
      max_buffer_bytes=max_buffer_bytes or self._settings.max_buffer_bytes,
      max_shared_bytes=self.device.shared_bytes,
    )
    layout = image.lay_out(run_cases)
    program = artefact.program
    first = _aligned(len(program))
    offsets = [
      first + i * _aligned(layout.num_bytes) for i in range(len(image.PATTERNS))
    ]
    size = offsets[-1] + _aligned(layout.num_bytes)
    descriptor = connection.make_mapping([program], size)
    try:
      memory = connection.view(descriptor, size)
      images = [memory[o : o + layout.num_bytes] for o in offsets]
      for pixels, pattern in zip(images, image.PATTERNS, strict=True):
        image.fill(pixels, run_cases, layout, pattern)
      report = ask(
        jobs.Run(
          program_bytes=len(program),
          image_offsets=tuple(offsets),
          image_bytes=layout.num_bytes,
          cases=tuple(
            tuple(
              make_launch(k, artefact.places[k.entry], places)
              for k in case.launches
            )
            for case, places in zip(run_cases, layout.offsets, strict=True)
          ),
          wall_s=self._run_wall_s,
          gpu_s=self._settings.run_cpu_s,
        ),
        descriptor,
      )
      check_report(report, cases, self._run_wall_s)
      passes = []
      for pixels, pattern in zip(images, image.PATTERNS, strict=True):
        damage = image.find_damage(pixels, run_cases, layout, pattern)
        if damage is not None:
          raise _damaged(damage, cases, report)
        passes.append(_contents(pixels, run_cases, layout))
      return RunResult(
        tuple(passes),
        report.shared_bytes,
        report.log,
        num_registers=report.num_registers,
        local_bytes=report.local_bytes,
      )
    finally:
      os.close(descriptor)

  @contextlib.contextmanager
  def alone(self) -> Iterator[None]:
    """The GPU for this judge alone; see `connection.py`. Who cannot have it may
    go on without: there is a new connection."""
    with contextlib.ExitStack() as stack:
      try:
        stack.enter_context(self._connection.alone())
      except host_lib.HostError:
        self._reconnect()
        raise
      yield

  def _reconnect(self):
    self._connection.close()
    if self._closed:
      raise host_lib.HostError("the executor is closed")
    self._connection = connection.Connection(self._server)

  def ask(self, job: jobs.Timing, descriptor: int) -> jobs.Report:
    """Has a timing job done; see `jobs.py`.

    Raises:
      HostError: a fault of the machine.
    """
    return self._connection.ask(job, descriptor)


def _aligned(n):
  return -(-n // 256) * 256


def make_launch(
  launch: protocol.RunLaunch,
  entry: tuple[int, str],
  places: Sequence[int],
) -> jobs.Launch:
  """A launch for the launcher, with places of buffers in the image."""
  arguments = []
  for kind, value in launch.arguments:
    if kind == "buffer":
      arguments.append(jobs.Argument(True, places[value], 8))
    else:
      num_bytes = 8 if kind == "word" else 4
      arguments.append(jobs.Argument(False, value, num_bytes))
  return jobs.Launch(
    *entry, launch.grid, launch.block, launch.shared_bytes, tuple(arguments)
  )


def check_report(
  report: jobs.Report,
  cases: Sequence[tuple[spec.Case, dict[str, np.ndarray]]],
  wall_s: float,
) -> None:
  """Returns where the job was done; raises Stop where it speaks against the
  candidate."""
  outcome = report.outcome
  if outcome == jobs.Outcome.DONE:
    return
  case = cases[min(report.case, len(cases) - 1)][0]
  if outcome == jobs.Outcome.TIMED_OUT:
    raise Stop(
      Status.TIMEOUT, f"the kernel did not end within {wall_s:g} s", case=case
    )
  if outcome == jobs.Outcome.KERNEL_FAILED:
    raise Stop(
      Status.RUNTIME_ERROR,
      f"{report.message} ({report.error})",
      finding=Finding(
        _KIND.get(report.error, "trap"), report.message, line=None
      ),
      case=case,
      log=report.log,
    )
  status = {
    jobs.Outcome.LOAD_FAILED: Status.COMPILE_ERROR,
    jobs.Outcome.BAD_PARAMETERS: Status.CONTRACT_VIOLATION,
    jobs.Outcome.LAUNCH_FAILED: Status.LAUNCH_ERROR,
  }[outcome]
  raise Stop(
    status,
    report.message,
    diagnostics=(Diagnostic("error", report.message, None, None),),
    case=case,
    log=report.log,
  )


def _damaged(damage, cases, report):
  where = (
    f"{-damage.distance_bytes} bytes before the start"
    if damage.distance_bytes < 0
    else f"{damage.distance_bytes} bytes beyond the end"
  )
  text = f"writes outside of all buffers, {where} of `{damage.buffer}`"
  return Stop(
    Status.RUNTIME_ERROR,
    text,
    finding=Finding("out_of_bounds", text, line=None),
    case=cases[damage.case][0],
    log=report.log,
  )


def _contents(pixels, run_cases, layout) -> Buffers:
  outputs, inputs = [], []
  for case, offsets in zip(run_cases, layout.offsets, strict=True):
    outputs.append({})
    inputs.append({})
    for buffer, offset in zip(case.buffers, offsets, strict=True):
      contents = pixels[offset : offset + buffer.num_bytes].copy()
      if buffer.role == protocol.OUTPUT:
        outputs[-1][buffer.name] = contents
      elif buffer.role == protocol.INPUT:
        inputs[-1][buffer.name] = contents
  return Buffers(outputs, inputs)
