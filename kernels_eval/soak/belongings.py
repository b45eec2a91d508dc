"""What a process has that it could forget to give back.

Candidates may have started processes, so these are looked for in several ways:
descendants of this process, which adopts orphans while it looks
(`adopting_orphans`), and processes that show one of its temporary folders in
their arguments, environment, working folder or memory map.
"""

import contextlib
import ctypes
import dataclasses
import os
import pathlib
import tempfile
import time
from collections.abc import Iterator
from typing import NamedTuple

from kernels_eval import temporary

_SHM = pathlib.Path("/dev/shm")
_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37
_GPU_SLACK_BYTES = 64 * 2**20  # other programs' small change


class Belongings(NamedTuple):
  """Names, so that a difference says what it is."""

  processes: frozenset[str]
  threads: frozenset[str]
  descriptors: frozenset[str]
  shared_memory: frozenset[str]  # entries of /dev/shm
  folders: frozenset[str]  # of ours in the temporary folder
  gpu_bytes: tuple[int, ...] | None  # in use, for each GPU


@dataclasses.dataclass(frozen=True)
class Comparison:
  """One kind of belongings, before and after."""

  name: str
  before: int | str
  after: int | str
  left: tuple[str, ...]  # what is there that was not

  @property
  def is_same(self) -> bool:
    """Whether nothing is left."""
    return not self.left


def _read(path):
  try:
    return pathlib.Path(path).read_bytes()
  except OSError:
    return b""


def _link(path):
  try:
    return os.readlink(path)
  except OSError:
    return ""


def parents() -> dict[int, int]:
  """Parent of every process."""
  found = {}
  for entry in pathlib.Path("/proc").glob("[0-9]*"):
    fields = _read(entry / "stat").rpartition(b")")[2].split()
    if len(fields) > 1:
      found[int(entry.name)] = int(fields[1])
  return found


def descendants(pid: int, parent_of: dict[int, int] | None = None) -> set[int]:
  """Children, their children and so on; zombies too.

  Args:
    pid: of the process.
    parent_of: what `parents` has found; None: it is asked now.
  """
  parent_of = parents() if parent_of is None else parent_of
  found, more = set(), {pid}
  while more:
    more = {p for p, parent in parent_of.items() if parent in more} - found
    found |= more
  return found


def _marked(mark):
  """Processes of this user that have to do with a folder of ours."""
  found = set()
  for entry in pathlib.Path("/proc").glob("[0-9]*"):
    if int(entry.name) == os.getpid():
      continue
    texts = (_read(entry / name) for name in ("cmdline", "environ", "maps"))
    if mark in _link(entry / "cwd").encode() or any(mark in t for t in texts):
      found.add(int(entry.name))
  return found


def _folders():
  """Temporary folders of this process, and of processes that are dead, among
  which its judges are in the end."""
  for name in os.listdir(tempfile.gettempdir()):
    pid = name.removeprefix(temporary.PREFIX).partition("-")[0]
    if name.startswith(temporary.PREFIX) and pid.isdigit():
      if int(pid) == os.getpid() or not pathlib.Path(f"/proc/{pid}").exists():
        yield name


def _gpu_bytes():
  """In use by anybody, for each GPU that CUDA shows this process; None where
  that cannot be seen."""
  try:
    from kernels_eval.cuda import state
  except ImportError:  # no nvidia-ml-py
    return None
  return state.used_bytes()


def take() -> Belongings:
  """What this process has now."""
  gpu_bytes = _gpu_bytes()  # first: NVML may keep a descriptor
  own = f"{temporary.PREFIX}{os.getpid()}-"
  pids = descendants(os.getpid()) | _marked(own.encode())
  descriptors = {
    f"{n}: {target}"
    for n in os.listdir("/proc/self/fd")
    if (target := _link(f"/proc/self/fd/{n}"))  # not the listing's own
  }
  shared = set()
  with contextlib.suppress(OSError):
    for path in _SHM.iterdir():
      with contextlib.suppress(OSError):
        if path.stat().st_uid == os.getuid():
          shared.add(path.name)
  return Belongings(
    processes=frozenset(
      f"{p} {_read(f'/proc/{p}/comm').decode(errors='replace').strip()}"
      for p in pids
    ),
    threads=frozenset(os.listdir("/proc/self/task")),
    descriptors=frozenset(descriptors),
    shared_memory=frozenset(shared),
    folders=frozenset(_folders()),
    gpu_bytes=gpu_bytes,
  )


def compare(before: Belongings, after: Belongings) -> list[Comparison]:
  """Every kind of belongings, before and after."""
  names = ("processes", "threads", "descriptors", "shared_memory", "folders")
  compared = []
  for name in names:
    was, now = getattr(before, name), getattr(after, name)
    left = tuple(sorted(now - was))
    compared.append(Comparison(name, len(was), len(now), left))
  if before.gpu_bytes is None or after.gpu_bytes is None:
    return [*compared, Comparison("gpu_memory", "no GPU", "no GPU", ())]
  for i, (was, now) in enumerate(
    zip(before.gpu_bytes, after.gpu_bytes, strict=True)
  ):
    more = now - was
    left = (f"{more} bytes",) if more > _GPU_SLACK_BYTES else ()
    compared.append(Comparison(f"gpu_memory_{i}", was, now, left))
  return compared


def compare_when_quiet(
  before: Belongings, timeout_s: float = 5.0
) -> list[Comparison]:
  """`compare` with now, at the moment when nothing is left, or at the end of
  the time: killed processes need some milliseconds to vanish."""
  end = time.monotonic() + timeout_s
  while True:
    reap_orphans()
    compared = compare(before, take())
    if all(c.is_same for c in compared) or time.monotonic() > end:
      return compared
    time.sleep(0.05)


def reap_orphans() -> None:
  """Buries dead processes that this one has adopted. Call it when none of its
  own children is left to wait for."""
  with contextlib.suppress(ChildProcessError):
    while os.waitpid(-1, os.WNOHANG)[0]:
      pass


@contextlib.contextmanager
def adopting_orphans() -> Iterator[None]:
  """Inside, a process whose parent has died becomes a child of this one."""
  libc = ctypes.CDLL(None, use_errno=True)
  was = ctypes.c_int()
  libc.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(was), 0, 0, 0)
  libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
  try:
    yield
  finally:
    libc.prctl(_PR_SET_CHILD_SUBREAPER, was.value, 0, 0, 0)
