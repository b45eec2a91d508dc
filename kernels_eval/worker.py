"""One judge process, seen from its client."""

import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

import msgspec

from kernels_eval import frames
from kernels_eval.judge import Hello
from kernels_eval.schema import Request
from kernels_eval.settings import Settings

# Not what is called kernels_eval in the working folder (-P).
_COMMAND = (sys.executable, "-P", "-m", "kernels_eval.judge_process")
START_S = 120.0  # the first start on a machine builds the native parts
_STOP_S = 4.0  # for a judge to end by itself


def encode(request: Request) -> bytes:
  """The frame of a request."""
  # Half of a surrogate pair is no text; the judge sees a question mark.
  text = request.text.encode("utf-8", "replace").decode()
  return msgspec.msgpack.encode(msgspec.structs.replace(request, text=text))


@dataclasses.dataclass
class Job:
  """One candidate of a batch."""

  request: Request
  indices: list[int]  # places in the batch with the same text
  key: bytes
  num_tries: int = 0
  failed_on: int | None = None  # the GPU of the last try that nobody counts


class Worker:
  """One judge process and the state of the conversation with it."""

  def __init__(
    self,
    root: pathlib.Path,
    seed: int,
    settings: Settings,
    executor_arguments: Sequence[str] = (),
    device: int | None = None,
  ):
    """Args: its folder, the inputs' seed, limits, what its process is told of
    the executor, and the index of its GPU, if it has one."""
    package_root = str(pathlib.Path(__file__).parents[1])
    path = os.environ.get("PYTHONPATH", "")
    self.root, self.device = root, device
    root.mkdir(exist_ok=True)
    self.process = subprocess.Popen(
      [
        *_COMMAND,
        *("--root", str(root)),
        "--settings",
        msgspec.json.encode(dataclasses.asdict(settings)).decode(),
        *executor_arguments,
      ],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      bufsize=0,
      start_new_session=True,
      env={
        **os.environ,
        "PYTHONPATH": package_root + (os.pathsep + path if path else ""),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
      },
    )
    os.set_blocking(self.process.stdout.fileno(), False)
    self.hello: Hello | None = None
    self.job: Job | None = None
    self.deadline = time.monotonic() + START_S
    self._received = bytearray()
    self._send(msgspec.msgpack.encode(seed))

  def _send(self, payload):
    try:
      frames.write(self.process.stdin, payload)
    except (OSError, ValueError):
      pass  # it is dead, or hung up: its end of file says so in a moment

  def start(self, job: Job, seconds: float) -> None:
    """Sends a request."""
    self.job = job
    self.deadline = time.monotonic() + seconds
    self._send(encode(job.request))

  def receive(self) -> list[bytes] | None:
    """Complete frames that have arrived; None when the process has ended."""
    ended = False
    while True:
      try:
        chunk = os.read(self.process.stdout.fileno(), 1 << 16)
      except BlockingIOError:
        break
      if not chunk:
        ended = True
        break
      self._received += chunk
    try:
      complete = frames.take(self._received)
    except frames.FrameError:
      return None
    return complete if complete or not ended else None

  def hang_up(self) -> None:
    """Tells the process to end itself and all that it started."""
    self.process.stdin.close()

  def kill(self) -> None:
    """Ends the process at once; its sandbox ends with it. `stop` follows."""
    try:
      os.killpg(self.process.pid, signal.SIGKILL)
    except ProcessLookupError:
      pass

  def stop(self) -> None:
    """Ends the process and all that it started; removes its files."""
    self.hang_up()
    try:
      self.process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
      self.kill()
      self.process.wait()
    self.process.stdout.close()
    shutil.rmtree(self.root, ignore_errors=True)
