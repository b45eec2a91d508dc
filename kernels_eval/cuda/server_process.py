"""The server of a GPU, seen from the pool that starts it."""

import os
import pathlib
import signal
import subprocess
import sys

_PACKAGE_ROOT = pathlib.Path(__file__).parents[2]
_STOP_S = 5.0


class ServerProcess:
  """A running `server.py`. A class because it owns a process."""

  def __init__(self, folder: pathlib.Path, device: int):
    """Starts it; judges wait for its socket by themselves.

    Args:
      folder: existing and private; the socket lies there.
      device: index of the GPU.
    """
    self.socket = folder / f"gpu-{device}"
    path = os.environ.get("PYTHONPATH", "")
    self._process = subprocess.Popen(
      [
        *(sys.executable, "-m", "kernels_eval.cuda.server"),
        *("--socket", str(self.socket), "--device", str(device)),
      ],
      stdin=subprocess.PIPE,
      start_new_session=True,
      env={
        **os.environ,
        "OPENBLAS_NUM_THREADS": "1",  # it forks: no other threads
        "PYTHONPATH": str(_PACKAGE_ROOT) + (os.pathsep + path if path else ""),
      },
    )

  @property
  def status(self) -> int | None:
    """Of its end; None while it runs."""
    return self._process.poll()

  def stop(self) -> None:
    """Ends it and its launchers. May be called twice."""
    self._process.stdin.close()
    try:
      self._process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
      # Its launchers die with it: they have asked the kernel for that.
      try:
        os.killpg(self._process.pid, signal.SIGKILL)
      except ProcessLookupError:
        pass
      self._process.wait()
