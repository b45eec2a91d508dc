"""Batches of later turns: every one that can come up has a program."""

import dataclasses

import pytest

from leap_jax import sampler
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
  rows = shape.num_rows
  for first in range(1, rows + 1):
    batch = shape.bucket_for(first)
    assert first <= batch <= rows
    assert batch in shape.buckets(1)
    assert (rows, batch) in shape.transitions(1)
    for second in range(1, first + 1):
      assert (batch, shape.bucket_for(second)) in shape.transitions(2)


@pytest.mark.parametrize("shape", CASES, ids=str)
def test_no_program_is_made_for_nothing(shape):
  batches = {shape.bucket_for(n) for n in range(1, shape.num_rows + 1)}
  assert set(shape.buckets(1)) == batches
  assert {batch for _, batch in shape.transitions(1)} == batches


def test_the_quickstarts_batches():
  shape = sizes(16, 8, (32, 128))
  assert shape.buckets(0) == (128,) and shape.buckets(1) == (32, 128)
  assert shape.transitions(1) == ((128, 32), (128, 128))
  assert shape.transitions(2) == ((32, 32), (128, 32), (128, 128))


@pytest.mark.parametrize("row_buckets", [(1, 64), (64,)])
def test_the_sampler_compiles_exactly_these(
  model, params, vocabulary, row_buckets
):
  shape = dataclasses.replace(sizes(1, 2, row_buckets), num_turns=2)
  made = sampler.make_sampler(
    model, shape, params, temperature=1.0, stop_tokens=vocabulary.stop_tokens
  )
  assert set(made.next_turn) == {(1, a, b) for a, b in shape.transitions(1)}
  assert set(made.decode) == {(0, 2)} | {(1, b) for b in shape.buckets(1)}


def test_the_sampler_of_three_turns_has_every_step(sampling, shape):
  assert set(sampling.next_turn) == {
    (turn, before, batch)
    for turn in (1, 2)
    for before, batch in shape.transitions(turn)
  }
