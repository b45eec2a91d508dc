"""A judge's connection to the server of a GPU."""

import contextlib
import mmap
import os
import pathlib
import socket
import time
from collections.abc import Iterator

import msgspec
import numpy as np

from kernels_eval.cpu.host import HostError
from kernels_eval.cuda import jobs, server
from kernels_eval.outcome import Stop
from kernels_eval.schema import Status

_RETRY_S = 0.02
# Other judges' jobs go first. Each of them has its limits, and a server that
# ends hangs up, so the only judge that waits so long is one that its pool has
# not ended yet: the pool knows how many there are (`client.py`).
_QUEUE_S = 3600.0
_ALONE_QUEUE_S = 300.0  # without the GPU for itself a judge can go on


class Connection:
  """One job at a time. A class because it owns a socket."""

  def __init__(self, path: pathlib.Path):
    """Waits for the first launcher.

    Args:
      path: of the server's socket.

    Raises:
      HostError: no server, or no usable GPU; one line says why.
    """
    self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    deadline = time.monotonic() + 2 * server.START_S
    while True:
      try:
        self._socket.connect(str(path))
        break
      except OSError as error:
        if time.monotonic() > deadline:
          self.close()
          raise HostError(f"no server of the GPU answers: {error}") from None
        time.sleep(_RETRY_S)
    self._socket.settimeout(server.MAX_FAILURES * server.START_S)
    hello = self._receive(jobs.Hello | jobs.StartFailed)
    if isinstance(hello, jobs.StartFailed):
      self.close()
      raise HostError(hello.reason)
    self.hello = hello

  def _receive(self, kind):
    try:
      message = self._socket.recv(jobs.MAX_MESSAGE_BYTES)
    except OSError as error:
      self.close()  # an answer that comes late must not pass for another's
      raise HostError(
        f"the server of the GPU does not answer: {error}"
      ) from None
    if not message:
      raise HostError("the server of the GPU has ended")
    return msgspec.msgpack.decode(message, type=kind)

  def ask(self, job: jobs.Run | jobs.Timing, descriptor: int) -> jobs.Report:
    """Sends a job with its mapping and waits for the report.

    Raises:
      Stop: the launches are too long to be sent.
      HostError: a fault of the machine.
    """
    return self._report(job, [descriptor], job.wall_s + _QUEUE_S)

  @contextlib.contextmanager
  def alone(self) -> Iterator[None]:
    """The GPU for the caller alone: other judges' jobs wait for the end.

    Raises:
      HostError: a fault of the machine.
    """
    self._report(jobs.Alone(), [], _ALONE_QUEUE_S)
    try:
      yield
    finally:
      self._send(jobs.Release(), [], _ALONE_QUEUE_S)

  def _send(self, job, descriptors, timeout_s):
    message = msgspec.msgpack.encode(job)
    if len(message) > jobs.MAX_MESSAGE_BYTES:
      raise Stop(
        Status.CONTRACT_VIOLATION,
        f"the launches of all cases take {len(message)} bytes, names of "
        f"kernels included; at most {jobs.MAX_MESSAGE_BYTES}",
      )
    try:
      self._socket.settimeout(timeout_s)  # of the answer, too
      socket.send_fds(self._socket, [message], descriptors)
    except OSError as error:
      raise HostError(f"the server of the GPU has ended: {error}") from None

  def _report(self, job, descriptors, timeout_s):
    self._send(job, descriptors, timeout_s)
    report = self._receive(jobs.Report)
    if report.outcome == jobs.Outcome.MACHINE_FAILED:
      raise HostError(report.message)
    return report

  def close(self) -> None:
    """Hangs up. Any thread may call it."""
    try:
      self._socket.shutdown(socket.SHUT_RDWR)
    except OSError:
      pass  # not connected, or closed already
    self._socket.close()


def make_mapping(parts: list[bytes | memoryview], num_bytes: int) -> int:
  """A descriptor of memory that begins with `parts`, of `num_bytes` in all."""
  descriptor = os.memfd_create("kernels_eval", os.MFD_CLOEXEC)
  try:
    for part in parts:
      view = memoryview(part)
      while view:
        view = view[os.write(descriptor, view) :]
    os.ftruncate(descriptor, num_bytes)
  except OSError:
    os.close(descriptor)
    raise
  return descriptor


def view(descriptor: int, num_bytes: int) -> np.ndarray:
  """The memory behind a descriptor as uint8, for as long as it is referred
  to."""
  return np.frombuffer(mmap.mmap(descriptor, num_bytes), np.uint8)
