"""Batches of later turns: every one that can come up has a program."""

import pytest

from leap_jax import draws, program_sizes, sampling, slots
from leap_jax.types import RolloutShape


def sizes(num_problems, group_size, row_buckets, num_turns=3):
  return RolloutShape(
    num_problems=num_problems,
    group_size=group_size,
    num_turns=num_turns,
    max_prompt_tokens=8,
    max_feedback_tokens=4,
    max_new_tokens=4,
    max_context_tokens=28,
    row_buckets=row_buckets,
  )


CASES = [
  sizes(p, g, buckets)
  for p in (1, 2, 8, 16)
  for g in (2, 8, 16)
  for buckets in ((32, 128), (32, 256), (1, 2, 3), (512,), (16,))
]


@pytest.mark.parametrize("shape", CASES, ids=str)
def test_however_many_rows_go_on_there_is_a_program(shape):
  for first in range(1, shape.num_rows + 1):
    batch = shape.bucket_for(first)
    assert first <= batch <= shape.num_rows
    assert batch in shape.buckets(1)


@pytest.mark.parametrize("shape", CASES, ids=str)
def test_no_program_is_made_for_nothing(shape):
  batches = {shape.bucket_for(n) for n in range(1, shape.num_rows + 1)}
  assert set(shape.buckets(1)) == batches


def test_the_quickstarts_programs():
  shape = sizes(16, 8, (32, 128))
  assert shape.buckets(0) == (128,) and shape.buckets(1) == (32, 128)
  decode, more = program_sizes.all_sizes(
    shape, sampling.Settings(draws.Rule(), ())
  )
  # A prompt of 8 and 4 new tokens, then 4 to read and 4 new ones; and one.
  later = {(width, batch) for width in (21, 29) for batch in (32, 128)}
  assert decode == {(13, 128)} | later and more == later


SETTINGS = [
  sampling.Settings(draws.Rule(), (), **options)
  for options in (
    {},
    {"implementation": "cudnn"},
    {"idle_fraction": 0.1},
    {"idle_fraction": 0.1, "slot_ratio": 0.5, "prefix_step": 5},
    {"max_slots": 24},
    {"max_slots": 24, "idle_fraction": 0.2, "implementation": "cudnn"},
  )
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("shape", CASES[::4], ids=str)
def test_whatever_comes_up_in_sampling_has_a_program(shape, settings):
  decode, more = program_sizes.all_sizes(shape, settings)
  reached = set()
  for turn in range(shape.num_turns):
    counts = program_sizes.slot_counts(shape, settings, turn)
    for ready in (
      (shape.num_rows,) if turn == 0 else range(1, shape.num_rows + 1)
    ):
      while ready:
        plan = slots.plan(ready, counts, settings.idle_fraction)
        for longest in range(1, shape.context_tokens(turn)):
          width = program_sizes.width_for(shape, settings, turn, longest)
          reached.add((width, plan.num_slots))
          assert longest < width
        ready -= plan.num_rows - plan.leave_at
      if turn:
        room = program_sizes.room_of(shape, settings, turn)
        assert (room, shape.bucket_for(shape.num_rows)) in more
  assert reached <= decode
