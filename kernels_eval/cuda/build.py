"""From a candidate's text to cubins, in the sandbox: the launcher loads what
our own processes have made and parses nothing that a candidate has written."""

import dataclasses
import pathlib
from collections.abc import Sequence

import msgspec

from kernels_eval.candidate import Candidate
from kernels_eval.cpu import compile_log as shared_log
from kernels_eval.cpu import failures
from kernels_eval.cpu import host as host_lib
from kernels_eval.cuda import compile_log, needs, toolkit, translate
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.launch_plan import Launch
from kernels_eval.outcome import Stop
from kernels_eval.problems import spec
from kernels_eval.schema import Diagnostic, Status
from kernels_eval.settings import Settings


@dataclasses.dataclass(frozen=True)
class Artefact:
  """A compiled candidate: for each entry, its module and its mangled name."""

  modules: tuple[bytes, ...]  # cubins
  entries: tuple[Launch, ...]
  places: tuple[tuple[int, str], ...]

  @property
  def program(self) -> bytes:
    """What a launcher loads (`jobs.py`)."""
    return msgspec.msgpack.encode(self.modules)


def _limits(settings, cuda_settings):
  return host_lib.Limits(
    settings.compile_wall_s,
    settings.compile_cpu_s,
    cuda_settings.compile_memory_bytes,
    settings.compile_file_bytes,
    num_processes=0,
  )


def _check_machine(answer, what, folder, settings):
  """Raises where no text is to blame. With any other exit status the library
  has ended the process, and it has read nothing but the text."""
  failures.check_machine(answer, what, folder, settings)
  is_exit = answer.outcome == host_lib.Outcome.EXITED
  if is_exit and answer.code == host_lib.COMPILER_FAULT:
    raise host_lib.HostError(
      f"fault of the {what}: {answer.log.strip()[-500:]}"
    )


def compile_cuda(
  host: host_lib.Host,
  kit: toolkit.Toolkit,
  compute_capability: tuple[int, int],
  candidate: Candidate,
  problem: spec.Problem,
  launches: Sequence[Launch],
  folder: pathlib.Path,
  settings: Settings,
  cuda_settings: CudaSettings,
  options: Sequence[str] = (),
) -> Artefact:
  """CUDA C++ through NVRTC.

  Args:
    host: of the sandbox, with NVRTC.
    kit: where the headers lie.
    compute_capability: of the device.
    candidate: the text.
    problem: its problem.
    launches: the kernels that are wanted, one for each entry.
    folder: an empty one, for this job.
    settings: limits of the evaluation.
    cuda_settings: likewise.
    options: further ones of NVRTC.

  Raises:
    Stop: with the compiler's messages.
    HostError: a fault of the machine.
  """
  major, minor = compute_capability
  unit = translate.translate_unit(candidate, problem)
  (folder / "unit.cu").write_text(unit, "utf-8", "replace")
  answer = host.compile_device(
    str(folder),
    "unit.cu",
    [
      f"--gpu-architecture=sm_{major}{minor}",
      "--std=c++17",
      "--disable-warnings",
      *(f"--include-path={path}" for path in kit.include),
      *needs.options(unit, kit.version),
      *options,
    ],
    [translate.name_expression(k) for k in launches],
    _limits(settings, cuda_settings),
  )
  if not answer.ok:
    _check_machine(answer, "compiler", folder, settings)
    messages = compile_log.read(answer.log)
    raise shared_log.compile_failure(
      messages, answer.log, candidate, problem, launches
    )
  names = (folder / "unit.names").read_text().splitlines()
  if len(names) != len(launches):
    raise host_lib.HostError("the compiler gave no name for a kernel")
  cubin = (folder / "unit.cubin").read_bytes()
  return Artefact((cubin,), tuple(launches), tuple((0, name) for name in names))


def assemble(
  host: host_lib.Host,
  kit: toolkit.Toolkit,
  compute_capability: tuple[int, int],
  texts: Sequence[str],
  symbols: Sequence[str],
  launches: Sequence[Launch],
  folder: pathlib.Path,
  settings: Settings,
  cuda_settings: CudaSettings,
) -> Artefact:
  """PTX of a Numba candidate through nvJitLink.

  Args:
    host: of the sandbox, with nvJitLink.
    kit: where nvJitLink lies, if it does.
    compute_capability: of the device.
    texts: PTX, one text for each launch.
    symbols: the entry's name in each text.
    launches: the kernels that are wanted.
    folder: an empty one, for this job.
    settings: limits of the evaluation.
    cuda_settings: likewise.

  Raises:
    Stop: nvJitLink refuses a text.
    HostError: a fault of the machine.
  """
  if kit.nvjitlink is None:
    raise host_lib.HostError(
      "Numba candidates on a GPU need nvJitLink, which is not installed: "
      "pip install nvidia-nvjitlink"
    )
  for i, text in enumerate(texts):
    (folder / f"unit{i}.ptx").write_text(text, "utf-8", "replace")
  major, minor = compute_capability
  answer = host.assemble(
    str(folder),
    len(texts),
    [f"-arch=sm_{major}{minor}"],
    _limits(settings, cuda_settings),
  )
  if not answer.ok:
    _check_machine(answer, "assembler", folder, settings)
    log = answer.log.strip()
    if answer.outcome == host_lib.Outcome.SIGNALLED:
      log = f"nvJitLink crashed (signal {answer.code})"
    log = log or "nvJitLink refuses the code"
    raise Stop(
      Status.COMPILE_ERROR,
      log.splitlines()[0],
      diagnostics=(Diagnostic("error", log, None, None),),
      log=answer.log,
    )
  cubins = tuple(
    (folder / f"unit{i}.cubin").read_bytes() for i in range(len(texts))
  )
  places = tuple(enumerate(symbols))
  return Artefact(cubins, tuple(launches), places)
