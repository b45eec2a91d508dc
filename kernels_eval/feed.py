"""A local pool that takes candidates at any time.

`Pool.stream` judges a batch that is known from its start; a machine of a
cluster gets its candidates one by one. One thread drives the pool, any other
submits.
"""

import collections
import concurrent.futures
import itertools
import os
import queue
import threading
from collections.abc import Callable

from kernels_eval import client
from kernels_eval import worker as worker_lib
from kernels_eval.schema import Evaluation, Request


class FeedError(Exception):
  """There will be no verdict; one line says why."""


class Feed:
  """Owns a pool and the thread that drives it: close it."""

  def __init__(self, pool: client.Pool):
    self._pool = pool
    self._orders: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    self._serials = itertools.count()
    self._waiting: collections.deque[worker_lib.Job] = collections.deque()
    self._futures: dict[bytes, concurrent.futures.Future] = {}
    self._ended = False
    self._fault = "its pool has ended"
    self._wake_fd, self._waker_fd = os.pipe()
    os.set_blocking(self._wake_fd, False)
    os.set_blocking(self._waker_fd, False)
    self._thread = threading.Thread(target=self._drive, daemon=True)
    self._thread.start()

  @property
  def num_restarts(self) -> int:
    """Judges that had to be replaced so far."""
    return self._pool.num_restarts

  def check(self) -> None:
    """Raises FeedError when no candidate can be judged any more."""
    if not self._thread.is_alive():
      raise FeedError(self._fault)

  def submit(self, request: Request) -> concurrent.futures.Future[Evaluation]:
    """Hands in a candidate.

    Returns:
      Its verdict to be; a FeedError if it is abandoned or the pool fails.

    Raises:
      FeedError: the pool has failed already.
    """
    self.check()
    job = worker_lib.Job(request, [], str(next(self._serials)).encode())
    future: concurrent.futures.Future[Evaluation] = concurrent.futures.Future()
    future.set_running_or_notify_cancel()  # nobody can cancel it now

    def accept():
      self._futures[job.key] = future
      self._waiting.append(job)

    self._tell(accept)
    return future

  def abandon(self) -> None:
    """Forgets all that was submitted before this call."""
    self._tell(self._drop)

  def close(self) -> None:
    """Ends the judges and removes their files."""
    self._tell(self._end)
    self._thread.join()
    os.close(self._wake_fd)
    os.close(self._waker_fd)

  def _tell(self, order):
    self._orders.put(order)
    try:
      os.write(self._waker_fd, b"!")
    except BlockingIOError:
      pass  # a full pipe wakes as well

  def _drop(self):
    self._waiting.clear()
    self._pool.abandon()
    self._refuse("abandoned")

  def _end(self):
    self._ended = True

  def _refuse(self, reason):
    for future in self._futures.values():
      future.set_exception(FeedError(reason))
    self._futures.clear()

  def _obey(self):
    try:
      os.read(self._wake_fd, 1 << 16)
    except BlockingIOError:
      pass
    while True:
      try:
        order = self._orders.get_nowait()
      except queue.Empty:
        return
      order()

  def _drive(self):
    try:
      while not self._ended:
        for job, evaluation in self._pool.turn(self._waiting, self._wake_fd):
          self._futures.pop(job.key).set_result(evaluation)
        self._obey()
    except (client.HarnessError, OSError) as error:
      self._fault = str(error)
    finally:
      self._refuse(self._fault)
      self._pool.close()
