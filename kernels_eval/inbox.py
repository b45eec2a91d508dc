"""What one thread hands to another over time: candidates to a pool, say."""

import collections
import os
import threading
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Abandoned(Exception):
  """Whoever put things in has failed; nobody waits for answers."""


class Inbox(Generic[Item]):
  """A queue from one thread to one other that can wait by `select`.

  Owns a pipe: close it, or use `with`, when the other thread is done with it.
  Whoever puts things in calls `end` behind the last one, or `abandon` if it
  fails: the other one would wait for ever.
  """

  def __init__(self):
    self._arrived: collections.deque[Iterable[Item]] = collections.deque()
    self._changed = threading.Condition()
    self._is_ended = self._is_abandoned = self._is_closed = False
    self._wake_fd, self._waker_fd = os.pipe()
    os.set_blocking(self._wake_fd, False)
    os.set_blocking(self._waker_fd, False)

  def put(self, items: Iterable[Item]) -> None:
    """Hands things over.

    Args:
      items: may be a generator; it runs in the thread that takes them.

    Raises:
      ValueError: behind the end.
    """
    with self._changed:
      if self._is_ended or self._is_abandoned:
        raise ValueError("nothing can be put behind the end of an inbox")
      self._arrived.append(items)
      self._wake()

  def end(self) -> None:
    """Nothing more will be put. May be called twice."""
    with self._changed:
      self._is_ended = True
      self._wake()

  def abandon(self) -> None:
    """The other thread shall end at once: `Abandoned` is raised there, and what
    it has not taken is forgotten. Also behind the end, and twice."""
    with self._changed:
      self._is_abandoned = True
      self._arrived.clear()
      self._wake()

  def _wake(self):
    """Under the lock."""
    self._changed.notify_all()
    if self._is_closed:
      return
    try:
      os.write(self._waker_fd, b"!")
    except BlockingIOError:
      pass  # a full pipe wakes as well

  def take(self) -> list[Item]:
    """All that has come since the last time, in the order in which it was put;
    waits for nothing.

    Raises:
      Abandoned: see `abandon`.
    """
    with self._changed:
      self._check()
      try:
        os.read(self._wake_fd, 1 << 16)
      except BlockingIOError:
        pass
      arrived, self._arrived = self._arrived, collections.deque()
    return [item for items in arrived for item in items]

  def _check(self):
    if self._is_abandoned:
      raise Abandoned("whoever filled the inbox has failed")

  @property
  def has_ended(self) -> bool:
    """Whether all has been taken and nothing more will come."""
    with self._changed:
      return self._is_ended and not self._arrived

  def fileno(self) -> int:
    """A descriptor that can be read when there may be something to take, or
    the inbox has been ended or abandoned."""
    return self._wake_fd

  def __iter__(self) -> Iterator[Item]:
    """All that comes until the end, waiting for it.

    Raises:
      Abandoned: see `abandon`.
    """
    while True:
      with self._changed:
        self._changed.wait_for(
          lambda: self._arrived or self._is_ended or self._is_abandoned
        )
        self._check()
        if not self._arrived:
          return
        items = self._arrived.popleft()
      yield from items

  def close(self) -> None:
    """Abandons what is not over. May be called twice."""
    self.abandon()
    with self._changed:
      if not self._is_closed:
        self._is_closed = True
        os.close(self._wake_fd)
        os.close(self._waker_fd)

  def __enter__(self):
    return self

  def __exit__(self, *_):
    self.close()
