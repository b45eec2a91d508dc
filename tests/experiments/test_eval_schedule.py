"""After which iterations a run is evaluated."""

import hypothesis
from hypothesis import strategies as st

from experiments import eval_schedule


def due(last, every, growth):
  return [
    i for i in range(1, last + 1) if eval_schedule.is_due(i, every, growth)
  ]


def test_by_hand():
  assert due(9, 0, 0.0) == due(9, 0, 0.1) == []
  assert due(9, 1, 0.0) == list(range(1, 10))
  assert due(9, 4, 0.0) == [4, 8]
  # 10 * 1.1 is 11 and not a hair more.
  assert due(41, 1, 0.1) == [
    *range(1, 12),
    *(13, 15, 17, 19, 21, 24, 27, 30, 33, 37, 41),
  ]
  assert due(40, 4, 0.5) == [4, 8, 12, 20, 32]
  assert due(64, 1, 1.0) == [1, 2, 4, 8, 16, 32, 64]


@hypothesis.given(st.integers(1, 7), st.floats(0, 2), st.integers(1, 200))
def test_gaps_grow_as_told_and_no_more(every, growth, last):
  places = [0, *due(last, every, growth)]
  for before, after in zip(places, places[1:], strict=False):
    assert after % every == 0
    least = max(before + every, before * (1 + growth))
    assert least - 1e-6 * (1 + after) <= after < least + every + 1e-6
