"""The time of a problem's reference as jitted JAX, measured once for a pool.

JAX runs in a process of its own, while this judge has the GPU for itself. Where
there is no time (JAX is not installed, memory is short, ...) there is a reason;
it is never a verdict.
"""

import contextlib
import hashlib
import os
import pathlib
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable

import msgspec

from kernels_eval.cpu.host import HostError

_PACKAGE_ROOT = pathlib.Path(__file__).parents[2]
_COMMAND = (sys.executable, "-P", "-m", "kernels_eval.jax_baseline")


class Report(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
  """What the process of JAX prints: times, or a reason."""

  times_ms: tuple[float, ...] = ()  # one for each reading
  version: str = ""  # of JAX
  reason: str = ""
  is_lasting: bool = False  # the reason holds for every problem

  @property
  def median_ms(self) -> float | None:
    """None where nothing was measured."""
    return statistics.median(self.times_ms) if self.times_ms else None


class JaxReference:
  """Asks for times, and remembers them in files that the judges of a pool
  share."""

  def __init__(
    self,
    folder: pathlib.Path,
    device: int,
    wall_s: float,
    alone: Callable[[], contextlib.AbstractContextManager[None]],
    command: tuple[str, ...] = _COMMAND,
  ):
    """Args: the pool's folder, index of the GPU, deadline of one measurement,
    what gives this judge the GPU for itself, how JAX's process is started."""
    self._folder = folder
    self._device = device
    self._wall_s = wall_s
    self._alone = alone
    self._command = command

  def measure(self, name: str, dims: dict[str, int]) -> Report:
    """The report for a problem at a size; never raises.

    Args:
      name: of the problem.
      dims: of the timed case.
    """
    place = self._place(f"{name} {sorted(dims.items())}")
    lasting = self._place("")
    try:
      known = _read(lasting) or _read(place)
      if known is None:
        with self._alone():
          # Another judge may have been here meanwhile.
          known = _read(lasting) or _read(place)
          if known is None:
            known = self._run(name, dims)
            _write(lasting if known.is_lasting else place, known)
    except (HostError, OSError) as error:
      return Report(reason=f"no measurement: {error}")
    return known

  def _place(self, key):
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return self._folder / f"jax-{self._device}-{digest}"

  def _run(self, name, dims):
    path = os.environ.get("PYTHONPATH", "")
    process = subprocess.Popen(
      [
        *self._command,
        *("--problem", name, "--device", str(self._device)),
        *("--dims", msgspec.json.encode(dims).decode()),
      ],
      stdin=subprocess.DEVNULL,
      stdout=subprocess.PIPE,
      stderr=subprocess.DEVNULL,
      start_new_session=True,
      env={
        **os.environ,
        "PYTHONPATH": str(_PACKAGE_ROOT) + (os.pathsep + path if path else ""),
      },
    )
    try:
      answer, _ = process.communicate(timeout=self._wall_s)
    except subprocess.TimeoutExpired:
      return Report(reason=f"JAX took more than {self._wall_s:g} s")
    finally:
      with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
      process.wait()
      process.stdout.close()
    try:
      report = msgspec.json.decode(answer, type=Report)
    except msgspec.MsgspecError:
      return Report(reason=f"JAX's process ended with {process.returncode}")
    median_ms = report.median_ms
    if median_ms is not None and median_ms <= 0:
      return Report(reason="too short to be told from the flush of the cache")
    return report


def _read(path):
  try:
    return msgspec.msgpack.decode(path.read_bytes(), type=Report)
  except (FileNotFoundError, msgspec.MsgspecError):
    return None


def _write(path, report):
  unfinished = path.with_suffix(f".{os.getpid()}")
  unfinished.write_bytes(msgspec.msgpack.encode(report))
  unfinished.rename(path)
