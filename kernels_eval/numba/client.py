"""The judge's side of the compile server: starts it, asks, believes nothing."""

import importlib.metadata
import importlib.util
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys

import msgspec

from kernels_eval import frames, sandbox, seccomp
from kernels_eval.numba.messages import (
  Answer,
  Compiled,
  CompileJob,
  LowerJob,
  Object,
  Outcome,
  Refusal,
)

_START_S = 60.0
_GRACE_S = 5.0
_LIBRARIES = ("numba_cuda", "numba", "llvmlite", "numpy", "msgspec", "cuda")
_PACKAGE = pathlib.Path(__file__).parents[1]
_BOOT = """
import importlib.util, os, sys
folder, libraries, cuda_home = sys.argv[1:4]
if cuda_home:
  os.environ["CUDA_HOME"] = cuda_home
sys.path[:0] = [path for path in libraries.split("\\n") if path]
spec = importlib.util.spec_from_file_location(
  "kernels_eval", folder + "/__init__.py", submodule_search_locations=[folder])
module = importlib.util.module_from_spec(spec)
sys.modules["kernels_eval"] = module
spec.loader.exec_module(module)
from kernels_eval.numba import server
server.main(sys.argv[4:])
"""


class UnavailableError(Exception):
  """This machine cannot compile Numba candidates; one line says why."""


class ServerError(Exception):
  """The server died or does not answer: the machine's fault, not the job's."""


def _version(name):
  try:
    return importlib.metadata.version(name)
  except importlib.metadata.PackageNotFoundError:
    return None


def _toolkit():
  """The folder of an installed CUDA toolkit that brings libNVVM and libdevice,
  or None. The wheel of libNVVM, where there is one, goes first. (Looked for
  without loading it: libNVVM starts to use the GPU.)"""
  if _version("nvidia-nvvm") is not None:
    return None
  nvcc = shutil.which("nvcc")
  candidates = [
    *(os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")),
    nvcc and str(pathlib.Path(nvcc).resolve().parents[1]),
    *("/usr/local/cuda", "/opt/cuda"),
  ]
  for path in filter(None, candidates):
    folder = pathlib.Path(path).resolve()
    libraries = [*folder.glob("nvvm/lib*/libnvvm.so*")]
    libraries += folder.glob("lib*/libnvvm.so*")
    if libraries and any(folder.glob("nvvm/libdevice/*.bc")):
      return folder
  return None


def check_versions() -> str:
  """What is installed, as one line.

  Raises:
    UnavailableError: a package is missing, or two do not work together.
  """
  wanted = ("numba-cuda", "numba", "llvmlite")
  found = {name: _version(name) for name in wanted}
  missing = [name for name, version in found.items() if version is None]
  if _version("nvidia-nvvm") is None and _toolkit() is None:
    missing.append("nvidia-nvvm")
  if missing:
    raise UnavailableError(
      f"Numba candidates need {', '.join(missing)}, which is not installed; "
      "install the extra: pip install 'leap-jax[numba]'"
    )
  numpy = _version("numpy") or "0"
  if tuple(int(x) for x in numpy.split(".")[:2]) >= (2, 5):
    raise UnavailableError(
      f"numba-cuda {found['numba-cuda']} does not work with NumPy {numpy} "
      "(np.row_stack is gone); install numpy<2.5"
    )
  return f"numba-cuda {found['numba-cuda']}"


def _library_folders():
  """Entries of our search path that hold what the server imports, in order.

  The server starts isolated (`-I`): PYTHONPATH and the like do not reach it,
  and only the folders that it needs become readable to it.
  """
  specs = [importlib.util.find_spec(name) for name in _LIBRARIES]
  places = {
    os.path.dirname(os.path.abspath(location))
    for spec in specs
    if spec is not None
    for location in spec.submodule_search_locations or ()
  }
  return [p for p in sys.path if p and os.path.abspath(p) in places]


def _readable():
  """(what the server needs to start, what its children may read later).

  Later our own package, which holds the canonical solutions, is left out.
  (Only Landlock can do that: without it, they are readable.)
  """
  prefixes = {os.path.realpath(p) for p in (sys.prefix, sys.base_prefix)}
  prefixes |= {sys.prefix, os.path.dirname(os.path.realpath(sys.executable))}
  # Packages may lie elsewhere (a `.pth` file, Debian's dist-packages).
  prefixes |= {p for p in sys.path if p.endswith("-packages")}
  prefixes |= {os.path.abspath(p) for p in _library_folders()}
  later = {"/dev/null", "/dev/urandom"}
  pending = [pathlib.Path(p) for p in (*prefixes, "/usr", "/lib", "/lib64")]
  while pending:
    folder = pending.pop()
    if folder != _PACKAGE and folder not in _PACKAGE.parents:
      later.add(str(folder))
    elif folder != _PACKAGE and folder.is_dir():
      pending += folder.iterdir()  # it holds our package: all but that
  return sorted({*prefixes, str(_PACKAGE)}), sorted(later)


class FrontEnd:
  """A running compile server. Owns a process and a socket."""

  def __init__(
    self,
    protections: sandbox.Protections,
    private: pathlib.Path,
    output: str = "ir",
  ):
    """Starts the server; it answers once numba.cuda is imported.

    Args:
      protections: what the machine grants.
      private: existing folder; the server's working folder.
      output: "ir" or "ptx", what it is going to be asked for most.

    Raises:
      UnavailableError: packages are missing or do not work together, or the
        machine cannot confine them.
      ServerError: it did not come up.
    """
    if not seccomp.is_available():
      raise UnavailableError(
        "Numba candidates run under a system-call filter (seccomp), which this "
        "machine does not grant"
      )
    self.versions = check_versions()
    at_start, later = _readable()
    toolkit = _toolkit()
    if toolkit is not None:
      at_start, later = [*at_start, str(toolkit)], [*later, str(toolkit)]
    ours, theirs = socket.socketpair()
    self._socket = ours
    try:
      self._process = sandbox.popen(
        protections,
        [
          *(sys.executable, "-I", "-B", "-c", _BOOT, str(_PACKAGE)),
          "\n".join(os.path.abspath(p) for p in _library_folders()),
          "" if toolkit is None else str(toolkit),
          *(str(theirs.fileno()), output, *later),
        ],
        readable=at_start,
        private=str(private),
        pass_fds=[theirs.fileno()],
      )
    except (OSError, subprocess.SubprocessError) as error:
      ours.close()
      raise ServerError(f"cannot start the sandbox: {error}") from None
    finally:
      theirs.close()
    self._stream = ours.makefile("rwb", buffering=0)
    ours.settimeout(_START_S)
    try:
      ready = frames.read(self._stream)
    except (OSError, frames.FrameError):
      ready = None
    if ready != b"ready":
      self.close()
      raise ServerError("the sandboxed Numba compiler did not start")

  def ask(self, job: CompileJob | LowerJob) -> Answer:
    """Runs a job in a child of the server.

    Raises:
      ServerError: the server died or does not answer.
    """
    self._socket.settimeout(job.limits.wall_s + _GRACE_S)
    try:
      frames.write(self._stream, msgspec.msgpack.encode(job))
      frame = frames.read(self._stream)
      if frame is None:
        raise ServerError("the sandboxed Numba compiler ended")
      answer = msgspec.msgpack.decode(frame, type=Answer)
    except (OSError, frames.FrameError, msgspec.MsgspecError) as error:
      raise ServerError(
        f"the sandboxed Numba compiler does not answer ({error})"
      ) from None
    if answer.outcome == Outcome.NOT_STARTED:
      raise ServerError(f"cannot fork for the compiler (errno {answer.code})")
    return answer

  @property
  def pid(self) -> int:
    """Of the outermost process (for tests)."""
    return self._process.pid

  def close(self) -> None:
    """Ends the server and its job. Any thread may call it."""
    try:
      self._socket.shutdown(socket.SHUT_RDWR)
    except OSError:
      pass
    try:
      self._process.wait(2.0)
    except subprocess.TimeoutExpired:
      try:
        os.killpg(self._process.pid, signal.SIGKILL)
      except ProcessLookupError:
        pass
      self._process.wait()
    self._stream.close()
    self._socket.close()


def decode(contents: bytes) -> Compiled | Object | Refusal | None:
  """A job's result, strictly; None for anything else."""
  try:
    return msgspec.msgpack.decode(contents, type=Compiled | Object | Refusal)
  except (msgspec.MsgspecError, RecursionError):
    return None
