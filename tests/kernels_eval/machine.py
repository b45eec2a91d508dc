"""What runs on this machine and whom it belongs to, for tests of processes."""

import os
import pathlib
import signal
import time


def read(path):
  """A file's bytes; none where it is gone or may not be read."""
  try:
    return pathlib.Path(path).read_bytes()
  except OSError:
    return b""


def processes(root):
  """Process ids with the folder in their arguments, environment or working
  folder, and all of their descendants; zombies too."""
  parents, marked = {}, set()
  for entry in pathlib.Path("/proc").glob("[0-9]*"):
    pid = int(entry.name)
    stat = read(entry / "stat").rpartition(b")")[2].split()
    if len(stat) < 2:
      continue
    parents[pid] = int(stat[1])
    try:
      cwd = os.readlink(entry / "cwd").encode()
    except OSError:
      cwd = b""
    text = read(entry / "cmdline") + read(entry / "environ") + cwd
    if str(root).encode() in text and pid != os.getpid():
      marked.add(pid)
  while True:
    more = {p for p, parent in parents.items() if parent in marked} - marked
    if not more:
      return marked
    marked |= more


def named(root, name):
  """Those of `processes` that run a program of this name."""
  return [
    pid
    for pid in processes(root)
    if read(f"/proc/{pid}/comm").strip() == name.encode()
  ]


def kill(root):
  """Kills what `processes` finds and waits for its end."""

  def alive():
    states = {
      p: read(f"/proc/{p}/stat").rpartition(b")")[2].split()[:1]
      for p in processes(root)
    }
    return [p for p, state in states.items() if state not in ([], [b"Z"])]

  for pid in alive():
    try:
      os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
      pass
  return wait_for(lambda: not alive(), 5)


def wait_for(condition, seconds):
  """Whether the condition comes true in time."""
  end = time.monotonic() + seconds
  while time.monotonic() < end:
    if condition():
      return True
    time.sleep(0.01)
  return condition()


def files(folder):
  """Every path below a folder."""
  return sorted(str(p) for p in pathlib.Path(folder).rglob("*"))
