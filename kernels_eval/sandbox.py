"""Starts a program with as little of the machine as possible.

Covered: no network; no view of other processes, of the home folder or of any
file outside of the system's libraries and tools, the given read-only folders
and one private folder; no privileges; nothing survives the program (with a PID
namespace). bubblewrap does it where it is installed and allowed; otherwise
namespaces and Landlock through the standard library, each as far as the kernel
grants it. What is active is returned as a list of words to be printed once.

Not covered here: limits on time, memory, processes, files and log size, and the
system-call filter; the started program (cpu/native/host.cpp) sets those for
each of its children. Not covered at all: faults of the kernel itself, and
timing side channels.
"""

import contextlib
import ctypes
import dataclasses
import os
import shutil
import subprocess
from collections.abc import Sequence

from kernels_eval import landlock, seccomp

_SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin")
_SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/alternatives", "/dev/null")

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUTS = 0x04000000
_CLONE_NEWIPC = 0x08000000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_CLONE_NEWNET = 0x40000000
_MS_REC_PRIVATE = 0x4000 | (1 << 18)


@dataclasses.dataclass(frozen=True)
class Protections:
  """What this machine grants. `kind`: bubblewrap, namespaces or none."""

  kind: str
  landlock: bool
  call_filter: bool

  def describe(self) -> str:
    """One line for the user."""
    parts = {
      "bubblewrap": [
        "bubblewrap (user, pid, network, ipc and mount namespaces)"
      ],
      "namespaces": ["user, pid, network, ipc and mount namespaces"],
      "none": [
        "NO namespaces (this kernel refuses them): network is closed by "
        "the system-call filter only"
      ],
    }[self.kind]
    if self.landlock:
      parts.append("Landlock")
    elif self.kind == "bubblewrap":
      parts.append("NO Landlock: Numba modules can read this package")
    else:
      parts.append("NO Landlock: files can be read and written as by this user")
    parts.append(
      "system-call filter"
      if self.call_filter
      else "NO system-call filter: kernels can make any call; Numba modules "
      "and Python functions are not judged"
    )
    parts.append("limits on time, memory, processes, file and log size")
    return "; ".join(parts)


def _bubblewrap(readable, private):
  command = [
    "bwrap",
    "--unshare-all",
    "--die-with-parent",
    "--new-session",
    "--as-pid-1",
    "--clearenv",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--tmpfs",
    "/tmp",
  ]
  for path in _SYSTEM:
    if os.path.islink(path):
      command += ["--symlink", os.readlink(path), path]
    elif os.path.isdir(path):
      command += ["--ro-bind", path, path]
  for path in _SYSTEM_FILES[:2]:
    command += ["--ro-bind-try", path, path]
  for path in readable:
    if not path.startswith(tuple(p + "/" for p in _SYSTEM)):
      command += ["--ro-bind", path, path]
  if private is not None:
    command += ["--bind", private, private, "--chdir", private]
  return command


def _write(path, text):
  with open(path, "w") as f:
    f.write(text)


def _unshare():
  """Moves this process into namespaces of its own; raises OSError."""
  libc = ctypes.CDLL(None, use_errno=True)
  uid, gid = os.getuid(), os.getgid()
  flags = (
    _CLONE_NEWUSER
    | _CLONE_NEWPID
    | _CLONE_NEWNET
    | _CLONE_NEWIPC
    | _CLONE_NEWNS
    | _CLONE_NEWUTS
  )
  if libc.unshare(flags):
    raise OSError(ctypes.get_errno(), "unshare")
  _write("/proc/self/setgroups", "deny")
  _write("/proc/self/uid_map", f"0 {uid} 1")
  _write("/proc/self/gid_map", f"0 {gid} 1")
  if libc.mount(b"none", b"/", None, _MS_REC_PRIVATE, None):
    raise OSError(ctypes.get_errno(), "mount")


def _volunteer():
  """If memory runs out, the system should end this process and its children.
  Best effort: a judge works without."""
  with contextlib.suppress(OSError):
    _write("/proc/self/oom_score_adj", "1000")


def _works(command, preexec=None):
  try:
    done = subprocess.run(
      command,
      stdin=subprocess.DEVNULL,
      capture_output=True,
      timeout=20,
      preexec_fn=preexec,
    )
  except (OSError, subprocess.SubprocessError):
    return False
  return done.returncode == 0


def probe(allow_bubblewrap: bool = True) -> Protections:
  """Finds out, by trying, what this machine grants."""
  true = shutil.which("true") or "/bin/true"
  granted = landlock.abi_version() > 0, seccomp.is_available()
  if (
    allow_bubblewrap
    and shutil.which("bwrap")
    and _works([*_bubblewrap((), None), true])
  ):
    return Protections("bubblewrap", *granted)
  kind = "namespaces" if _works([true], _unshare) else "none"
  return Protections(kind, *granted)


def popen(
  protections: Protections,
  program: Sequence[str],
  *,
  readable: Sequence[str],
  private: str,
  pass_fds: Sequence[int],
) -> subprocess.Popen:
  """Starts `program` inside of the sandbox, in a session of its own.

  Args:
    protections: what `probe` found.
    program: argument list; without a PID namespace of bubblewrap's, a program
      that is to be the first of one gets `--first` appended and must fork.
    readable: folders to be seen besides the system's.
    private: the only folder that may be written to; also the working folder.
    pass_fds: descriptors that the program inherits.

  Returns:
    The process. Its standard output and error go to the caller's.
  """
  environment = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LC_ALL": "C",
    "TMPDIR": private,
    "HOME": private,
  }
  if protections.kind == "bubblewrap":
    settings = []
    for key, value in environment.items():
      settings += ["--setenv", key, value]
    return subprocess.Popen(
      [*_bubblewrap(readable, private), *settings, *program],
      stdin=subprocess.DEVNULL,
      pass_fds=pass_fds,
      start_new_session=True,
      preexec_fn=_volunteer,
    )

  def confine():
    _volunteer()
    if protections.kind == "namespaces":
      _unshare()
    if protections.landlock:
      # Without a PID namespace the host finds orphans through /proc. Landlock
      # keeps other processes' entries unreadable.
      proc = ("/proc",) if protections.kind == "none" else ()
      landlock.restrict(
        (*_SYSTEM, *_SYSTEM_FILES, *proc, *readable), (private, "/dev/null")
      )

  first = ["--first"] if protections.kind == "namespaces" else []
  return subprocess.Popen(
    [*program, *first],
    stdin=subprocess.DEVNULL,
    pass_fds=pass_fds,
    start_new_session=True,
    env=environment,
    cwd=private,
    preexec_fn=confine,
  )
