"""Which rows decode together, and when to choose again. Host code.

A decoding program has a fixed number of slots. Rows end at different times, and
a slot whose row has ended still costs its share of every matrix product. So a
program is left as soon as it pays: for a smaller one that holds the rows that
are left, or to give its idle slots to rows that wait. Caches stay in place, so
leaving costs a round trip to the host and nothing else.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Plan(NamedTuple):
  """One call of a decoding program."""

  num_slots: int
  num_rows: int  # of those that can run, so many take part
  leave_at: int  # the call ends when no more rows than this are unfinished


def plan(num_ready: int, sizes: Sequence[int], idle_fraction: float) -> Plan:
  """How to go on with some unfinished rows.

  Args:
    num_ready: unfinished rows, at least 1.
    sizes: slots of the programs that there are, ascending.
    idle_fraction: of the slots that must be idle, or could be saved, before a
      call ends early; 1 = a call goes on until all its rows have ended.

  Returns:
    The smallest program that holds all rows, or the largest one; and when to
    leave it.
  """
  assert num_ready > 0, num_ready
  num_slots = next((s for s in sizes if s >= num_ready), sizes[-1])
  num_rows = min(num_ready, num_slots)
  if idle_fraction >= 1:
    return Plan(num_slots, num_rows, 0)
  fewer = int(num_slots * (1 - idle_fraction))
  if num_ready > num_slots:  # others wait
    return Plan(num_slots, num_rows, min(fewer, num_rows - 1))
  smaller = [s for s in sizes if s <= fewer]
  return Plan(num_slots, num_rows, min(max(smaller, default=0), num_rows - 1))


def ladder(most: int, least: int, ratio: float) -> tuple[int, ...]:
  """Sizes from `most` down, each about `ratio` of the one above.

  Multiples of 8, ascending. Rows that end at a steady rate keep a share of
  (1 - ratio) / ln(1 / ratio) of the slots of such a ladder busy: 0.72 for 1/2,
  0.87 for 3/4, 0.92 for 0.85.
  """
  sizes, size = [most], most * ratio
  while size >= least:
    rounded = -(-int(size) // 8) * 8
    if rounded < sizes[-1]:
      sizes.append(rounded)
    size *= ratio
  return tuple(sorted(sizes))
