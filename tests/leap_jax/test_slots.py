"""Which rows decode together: what a plan costs."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest

from leap_jax import slots


class Cost(NamedTuple):
  """Of decoding rows of known lengths."""

  steps: int
  slot_steps: int  # slots, summed over steps
  calls: int

  def useful_fraction(self, lengths: Sequence[int]) -> float:
    """Share of the slots that made a token."""
    return sum(lengths) / self.slot_steps


def simulate(
  lengths: Sequence[int], sizes: Sequence[int], idle_fraction: float
) -> Cost:
  """What `slots.plan` makes of rows that will have so many tokens.

  Rows wait in the order given.
  """
  left = [n for n in lengths if n > 0]
  steps = slot_steps = calls = 0
  while left:
    call = slots.plan(len(left), sizes, idle_fraction)
    running = sorted(left[: call.num_rows], reverse=True)
    # The call ends with the row that leaves `leave_at` behind it.
    taken = running[call.leave_at]
    steps += taken
    slot_steps += taken * call.num_slots
    calls += 1
    after = [n - taken for n in left[: call.num_rows]]
    left = [n for n in after if n > 0] + left[call.num_rows :]
  return Cost(steps, slot_steps, calls)


def test_a_plan_holds_all_rows_or_as_many_as_it_can():
  sizes = (8, 16, 32)
  assert slots.plan(20, sizes, 1.0) == (32, 20, 0)
  assert slots.plan(8, sizes, 1.0) == (8, 8, 0)
  assert slots.plan(50, sizes, 1.0) == (32, 32, 0)


def test_a_call_ends_when_a_smaller_program_will_do():
  assert slots.plan(32, (8, 16, 32), 0.25) == (32, 32, 16)
  # 16 slots save less than 60 %.
  assert slots.plan(32, (8, 16, 32), 0.6) == (32, 32, 8)
  assert slots.plan(5, (8, 16, 32), 0.1) == (8, 5, 0)


def test_a_call_ends_when_slots_can_be_given_to_rows_that_wait():
  assert slots.plan(50, (8, 16, 32), 0.25) == (32, 32, 24)


def test_a_call_always_ends_a_row():
  for ready in range(1, 60):
    for idle in (0.001, 0.1, 0.5, 1.0):
      plan = slots.plan(ready, (4, 8, 16, 24), idle)
      assert 0 <= plan.leave_at < plan.num_rows <= min(plan.num_slots, ready)


def test_a_simulation_counts_every_token():
  # Four slots for 2, 3, 3, 9; two of them wait for nobody.
  cost = simulate([2, 3, 3, 9], (1, 4), 0.5)
  assert cost == (9, 3 * 4 + 6 * 1, 2)
  assert cost.useful_fraction([2, 3, 3, 9]) == 17 / 18


def lengths(kind, count, seed):
  rng = np.random.default_rng(seed)
  draw = {
    "geometric": lambda: rng.geometric(1 / 256, count),
    "lognormal": lambda: rng.lognormal(np.log(256), 0.6, count),
  }[kind]()
  return np.clip(draw, 1, 1024).astype(int).tolist()


@pytest.mark.parametrize("kind", ["geometric", "lognormal"])
@pytest.mark.parametrize("count", [256, 1024])
def test_nine_of_ten_slots_are_useful(kind, count):
  sizes = slots.ladder(count, 8, 0.85)
  for seed in range(3):
    drawn = lengths(kind, count, seed)
    cost = simulate(drawn, sizes, 0.05)
    assert cost.useful_fraction(drawn) > 0.89
    whole = simulate(drawn, (count,), 1.0)
    assert whole.useful_fraction(drawn) < 0.35


def test_a_ladder_descends_by_its_ratio():
  assert slots.ladder(128, 8, 0.5) == (8, 16, 32, 64, 128)
  sizes = slots.ladder(1000, 8, 0.85)
  assert sizes[-1] == 1000 and sizes[0] == 8
  assert all(size % 8 == 0 for size in sizes[:-1])
  for smaller, larger in zip(sizes[3:], sizes[4:], strict=False):
    assert 0.6 < smaller / larger < 0.95
