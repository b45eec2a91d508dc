"""Client of the sandboxed host process (native/host.cpp): one job at a time."""

import dataclasses
import enum
import os
import pathlib
import signal
import socket
import struct
import subprocess
from collections.abc import Sequence

from kernels_eval import sandbox
from kernels_eval.cpu import toolchain

# native/host.h: Job and Answer.
_JOB = struct.Struct("<IIIIQQII")
_ANSWER = struct.Struct("<IiIIQQII")
_COMMAND, _RUN, _COMPILE, _ASSEMBLE = 1, 2, 3, 4
# Exit status of `compile_device` and `assemble` where no text is to blame.
COMPILER_FAULT = 3
MAX_LOG_BYTES = 64 * 1024
_GRACE_S = 5.0  # beyond a job's own limit before the host itself is given up


class HostError(Exception):
  """The host died or does not answer: the machine's fault, not the job's."""


class Outcome(enum.IntEnum):
  """How a job ended."""

  EXITED = 0
  SIGNALLED = 1
  WALL_LIMIT = 2
  CPU_LIMIT = 3
  NOT_STARTED = 4


@dataclasses.dataclass(frozen=True)
class Limits:
  """For one job. Zero means no limit, where that is allowed."""

  wall_s: float
  cpu_s: float
  address_space_bytes: int
  file_bytes: int
  num_processes: int
  log_bytes: int = MAX_LOG_BYTES


@dataclasses.dataclass(frozen=True)
class Answer:
  """`code` is an exit status or a signal's number, by `outcome`."""

  outcome: Outcome
  code: int
  wall_ms: float
  log: str
  total_log_bytes: int
  peak_resident_bytes: int
  started: bool  # a run came to the point where it loads the library
  cpu_ms: float

  @property
  def ok(self) -> bool:
    """Whether the job exited with status 0."""
    return self.outcome == Outcome.EXITED and self.code == 0


class Host:
  """A running host. A class because it owns a process and a socket."""

  def __init__(
    self,
    tools: toolchain.Toolchain,
    protections: sandbox.Protections,
    private: pathlib.Path,
    *,
    nvrtc: pathlib.Path | None = None,
    nvjitlink: pathlib.Path | None = None,
    readable: Sequence[str] = (),
  ):
    """Starts the process.

    Args:
      tools: built parts; the host program is among them.
      protections: what the machine grants.
      private: existing folder for the jobs' files.
      nvrtc: the library, for `compile_device`.
      nvjitlink: the library, for `assemble`.
      readable: folders that jobs may read besides the tools'.

    Raises:
      HostError: it did not come up.
    """
    self.private = private
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    self._socket = ours
    try:
      self._process = sandbox.popen(
        protections,
        [
          str(tools.host),
          str(theirs.fileno()),
          *([f"--nvrtc={nvrtc}"] if nvrtc else []),
          *([f"--nvjitlink={nvjitlink}"] if nvjitlink else []),
        ],
        readable=[
          *readable_folders(tools),
          *(str(library.parent) for library in (nvrtc, nvjitlink) if library),
          *readable,
        ],
        private=str(private),
        pass_fds=[theirs.fileno()],
      )
    except (OSError, subprocess.SubprocessError) as error:
      ours.close()
      raise HostError(f"cannot start the sandbox: {error}") from None
    finally:
      theirs.close()
    ours.settimeout(20.0)
    try:
      hello = ours.recv(64)
    except OSError:
      hello = b""
    if hello != b"ready":
      self.close()
      raise HostError("the sandboxed host process did not start")

  def command(self, arguments: list[str], cwd: str, limits: Limits) -> Answer:
    """Runs a program; its output is the log."""
    return self._ask(_COMMAND, [cwd, *arguments], limits, None)

  def run(self, library: str, plan_fd: int, limits: Limits) -> Answer:
    """Loads a library and executes the plan in the mapping of `plan_fd`."""
    return self._ask(_RUN, [library], limits, plan_fd)

  def compile_device(
    self,
    cwd: str,
    unit: str,
    options: Sequence[str],
    names: Sequence[str],
    limits: Limits,
  ) -> Answer:
    """Compiles with NVRTC; leaves unit.cubin and unit.names in `cwd`.

    Args:
      cwd: working folder of the job.
      unit: source file in it.
      options: of NVRTC.
      names: expressions of kernels; their mangled names go to unit.names, one
        a line.
      limits: of the job.
    """
    strings = [cwd, unit, *options, "--", *names]
    return self._ask(_COMPILE, strings, limits, None)

  def assemble(
    self, cwd: str, count: int, options: Sequence[str], limits: Limits
  ) -> Answer:
    """Turns PTX into cubins with nvJitLink.

    Args:
      cwd: working folder of the job; holds unit0.ptx and so on, and afterwards
        unit0.cubin and so on.
      count: of units.
      options: of nvJitLink.
      limits: of the job.
    """
    return self._ask(_ASSEMBLE, [cwd, str(count), *options], limits, None)

  def _ask(self, kind, strings, limits, descriptor):
    payload = _JOB.pack(
      kind,
      len(strings),
      int(limits.wall_s * 1000),
      int(limits.cpu_s * 1000),
      limits.address_space_bytes,
      limits.file_bytes,
      limits.num_processes,
      limits.log_bytes,
    ) + b"".join(s.encode() + b"\0" for s in strings)
    self._socket.settimeout(limits.wall_s + _GRACE_S)
    try:
      if descriptor is None:
        self._socket.send(payload)
      else:
        socket.send_fds(self._socket, [payload], [descriptor])
      answer = self._socket.recv(_ANSWER.size + MAX_LOG_BYTES + 16)
    except OSError as error:
      raise HostError(
        f"the sandboxed host process does not answer ({error})"
      ) from None
    if len(answer) < _ANSWER.size:
      raise HostError("the sandboxed host process ended")
    outcome, code, wall_us, log_bytes, total, peak, started, cpu_ms = (
      _ANSWER.unpack_from(answer)
    )
    log = answer[_ANSWER.size : _ANSWER.size + log_bytes]
    return Answer(
      Outcome(outcome),
      code,
      wall_us / 1000,
      log.decode("utf-8", "replace"),
      total,
      peak,
      bool(started),
      float(cpu_ms),
    )

  @property
  def pid(self) -> int:
    """Of the outermost process (for tests)."""
    return self._process.pid

  def close(self) -> None:
    """Ends the host and whatever it runs. Any thread may call it, also while
    another waits for an answer."""
    try:
      self._socket.shutdown(socket.SHUT_RDWR)
    except OSError:
      pass  # closed already, or the host is gone
    self._socket.close()
    try:
      # It ends by itself at once, and with it all of its processes are reaped.
      self._process.wait(2.0)
    except subprocess.TimeoutExpired:
      try:
        os.killpg(self._process.pid, signal.SIGKILL)
      except ProcessLookupError:
        pass
      self._process.wait()


def readable_folders(tools: toolchain.Toolchain) -> list[str]:
  """Where compiler, linker and our own parts lie."""
  folders = {str(tools.parts)}
  for tool in tools.programs:
    real = os.path.realpath(tool)
    # A compiler in a prefix of its own (conda, spack) needs all of the prefix.
    prefix = str(pathlib.Path(real).parent.parent)
    folders.add(prefix if prefix != "/" else str(pathlib.Path(real).parent))
  return sorted(folders)
