"""What a measurement was made on."""

import dataclasses
import datetime
import os
import pathlib
import platform
import subprocess


@dataclasses.dataclass(frozen=True)
class Machine:
  """Hardware, system, time and version of the code."""

  cpu: str
  num_cores: int  # that this process may use
  memory_bytes: int
  load_average: float  # of the minute before
  system: str
  python: str
  date: str  # ISO 8601, UTC
  commit: str  # "" outside of a checkout


def _cpu_model():
  try:
    text = pathlib.Path("/proc/cpuinfo").read_text()
  except OSError:
    return platform.processor()
  for line in text.splitlines():
    key, _, value = line.partition(":")
    if key.strip() == "model name":
      return value.strip()
  return platform.machine()


def _commit():
  """Of the checkout that holds this package, `+` for changed files."""
  folder = pathlib.Path(__file__).parents[2]
  if not (folder / ".git").exists():
    return ""
  try:
    done = subprocess.run(
      [
        "git",
        "-C",
        str(folder),
        "describe",
        "--always",
        "--exclude=*",
        "--dirty=+",
      ],
      capture_output=True,
      text=True,
      timeout=20,
    )
  except (OSError, subprocess.TimeoutExpired):
    return ""
  return done.stdout.strip() if done.returncode == 0 else ""


def describe() -> Machine:
  """This machine, now."""
  now = datetime.datetime.now(datetime.UTC)
  return Machine(
    cpu=_cpu_model(),
    num_cores=len(os.sched_getaffinity(0)),
    memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    load_average=os.getloadavg()[0],
    system=platform.platform(),
    python=platform.python_version(),
    date=now.isoformat(timespec="seconds"),
    commit=_commit(),
  )
