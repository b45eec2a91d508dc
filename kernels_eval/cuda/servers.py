"""The GPUs of a pool, a server for each (`server.py`)."""

import pathlib
import sys
from collections.abc import Iterable

import msgspec

from kernels_eval.cuda import server_process
from kernels_eval.cuda.settings import CudaSettings


class Servers:
  """Running servers. A class because it owns processes."""

  def __init__(self, folder: pathlib.Path, settings: CudaSettings):
    """Starts them; judges wait for their sockets by themselves.

    Args:
      folder: existing and private; the sockets lie there.
      settings: which GPUs, and what judges do there.
    """
    self._settings = msgspec.json.encode(settings).decode()
    self._running = {
      device: server_process.ServerProcess(folder, device)
      for device in settings.devices
    }

  @property
  def devices(self) -> list[int]:
    """Indices of the GPUs that are in use."""
    return list(self._running)

  def least_loaded(self, taken: Iterable[int]) -> int:
    """The GPU for another judge.

    Args:
      taken: the GPU of each judge that there is.
    """
    taken = list(taken)
    return min(self._running, key=taken.count)

  def arguments_for(self, device: int) -> list[str]:
    """What `judge_process.py` is told of its GPU."""
    return [
      *("--server", str(self._running[device].socket)),
      *("--device", str(device)),
      *("--cuda-settings", self._settings),
    ]

  def ended(self) -> list[tuple[int, str]]:
    """GPUs whose servers have ended by themselves, and words for it."""
    return [
      (device, f"the server of GPU {device} has ended (status {server.status})")
      for device, server in self._running.items()
      if server.status is not None
    ]

  def give_up(self, device: int, reason: str) -> None:
    """Ends the server of a GPU that cannot be used any more, and says so."""
    self._running.pop(device).stop()
    rest = ", ".join(map(str, self._running))
    print(
      f"kernels_eval: going on without GPU {device}, on GPU {rest}: {reason}",
      file=sys.stderr,
    )

  def stop(self) -> None:
    """Ends all servers and their launchers. May be called twice."""
    for server in self._running.values():
      server.stop()


def obstacle(settings: CudaSettings, num_judges: int | None) -> str | None:
  """Why the GPUs cannot be shared out so, in one line, or None.

  Args:
    settings: which GPUs.
    num_judges: judge processes; None where there are enough.
  """
  devices = settings.devices
  if not devices or len(set(devices)) < len(devices) or min(devices) < 0:
    return f"devices={devices}; at least one index of a GPU, from 0, none twice"
  if num_judges is not None and num_judges < len(devices):
    return f"{num_judges} judges for {len(devices)} GPUs; each GPU needs one"
  return None
