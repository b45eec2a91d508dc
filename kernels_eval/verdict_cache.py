"""Which verdicts are remembered, and the memory of one process."""

import collections
from typing import Protocol

from kernels_eval.schema import Evaluation, Phase, Status

MAX_RECORDS = 100_000


def may_be_kept(evaluation: Evaluation) -> bool:
  """Whether a verdict says something about its candidate for ever.

  Not an infrastructure error, which says nothing; not a timeout, which may be
  a loaded machine's; not a verdict with a time or about one, because times are
  measured, not remembered, and a verdict robbed of its time would look like a
  kernel that nobody has timed.
  """
  return (
    evaluation.counts
    and evaluation.status != Status.TIMEOUT
    and evaluation.candidate_ms is None
    and evaluation.phase != Phase.TIME
  )


class Cache(Protocol):
  """Verdicts by content address (`addresses.py`)."""

  def get(self, key: bytes) -> Evaluation | None:
    """The verdict, or None. Its `id` is that of the first request."""

  def put(self, key: bytes, evaluation: Evaluation) -> None:
    """Remembers a verdict, if `may_be_kept`."""


class Nothing:
  """Remembers nothing."""

  def get(self, key: bytes) -> Evaluation | None:
    """None."""
    del key

  def put(self, key: bytes, evaluation: Evaluation) -> None:
    """Does nothing."""


class Memory:
  """Remembers the verdicts used last, for the life of the process."""

  def __init__(self, max_records: int = MAX_RECORDS):
    self._max_records = max_records
    self._records: collections.OrderedDict[bytes, Evaluation] = (
      collections.OrderedDict()
    )

  def get(self, key: bytes) -> Evaluation | None:
    """The verdict, or None."""
    evaluation = self._records.get(key)
    if evaluation is not None:
      self._records.move_to_end(key)
    return evaluation

  def put(self, key: bytes, evaluation: Evaluation) -> None:
    """Remembers a verdict; the one used least recently makes room."""
    if not may_be_kept(evaluation):
      return
    self._records[key] = evaluation
    self._records.move_to_end(key)
    if len(self._records) > self._max_records:
      self._records.popitem(last=False)
