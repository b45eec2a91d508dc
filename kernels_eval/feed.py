"""A local pool that takes candidates at any time, for ever.

`Pool.stream` ends with its inbox, and what it forgets it forgets as a whole; a
machine of a cluster gets candidates one by one as long as it lives, and may be
told between two of them to forget those before. One thread drives the pool, any
other submits.
"""

import collections
import concurrent.futures
import itertools
import threading
from collections.abc import Callable

from kernels_eval import client, inbox
from kernels_eval import worker as worker_lib
from kernels_eval.schema import Evaluation, Request


class FeedError(Exception):
  """There will be no verdict; one line says why."""


class Feed:
  """Owns a pool and the thread that drives it: close it."""

  def __init__(self, pool: client.Pool):
    self._pool = pool
    self._orders: inbox.Inbox[Callable[[], None]] = inbox.Inbox()
    self._serials = itertools.count()
    self._waiting: collections.deque[worker_lib.Job] = collections.deque()
    self._futures: dict[bytes, concurrent.futures.Future] = {}
    self._ended = False
    self._fault = "its pool has ended"
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
    if self._thread.is_alive():
      self._tell(self._end)
      self._thread.join()
    self._orders.close()

  def _tell(self, order):
    self._orders.put([order])

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

  def _drive(self):
    try:
      while not self._ended:
        ended = self._pool.turn(self._waiting, self._orders.fileno())
        for job, evaluation in ended:
          self._futures.pop(job.key).set_result(evaluation)
        for order in self._orders.take():
          order()
    except (client.HarnessError, OSError) as error:
      self._fault = str(error)
    finally:
      self._refuse(self._fault)
      self._pool.close()
