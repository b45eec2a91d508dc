"""The fixed-size buffer."""

import dataclasses

import jax
import numpy as np
import pytest

from leap_jax import buffer


def record(programs, state, shape, rows, turn=0, **changes):
  batch = 8 if turn == 0 else 4
  width = shape.max_prompt_tokens if turn == 0 else shape.max_feedback_tokens
  pad = batch - len(rows)
  place = np.asarray(list(rows) + [shape.num_rows] * pad, np.int32)
  fields = dict(
    context=np.tile(np.arange(1, width + 1, dtype=np.int32), (batch, 1)),
    context_lengths=np.full(batch, 3, np.int32),
    completions=np.tile(
      100 + np.arange(shape.max_new_tokens, dtype=np.int32), (batch, 1)
    ),
    completion_lengths=np.full(batch, 2, np.int32),
    logprobs=np.tile(
      -np.arange(1.0, shape.max_new_tokens + 1, dtype=np.float32), (batch, 1)
    ),
    correct=np.zeros(batch, bool),
    counts=np.ones(batch, bool),
    speedup=np.zeros(batch, np.float32),
  )
  fields.update(changes)
  return programs.record_turn[turn, batch](state, place, *fields.values())


def test_context_and_completion_stand_one_behind_the_other(programs, shape):
  got = jax.device_get(record(programs, programs.init(), shape, range(8)))
  assert got.tokens[0, 1, 0, :7].tolist() == [1, 2, 3, 100, 101, 0, 0]
  assert got.own[0, 1, 0, :7].tolist() == [0, 0, 0, 1, 1, 0, 0]
  assert got.behavior_logprobs[0, 1, 0, :6].tolist() == [0, 0, 0, -1, -2, 0]
  assert (got.lengths[..., 0] == 5).all()
  assert got.executed[..., 0].all() and not got.executed[..., 1:].any()


@pytest.mark.covers("P09")
def test_the_end_token_counts_when_it_is_also_the_padding(programs, shape):
  # Ids 5, 6, 0, 0, 0 of true length 3, where 0 both ends and pads.
  completions = np.zeros((8, shape.max_new_tokens), np.int32)
  completions[:, :2] = [5, 6]
  got = jax.device_get(
    record(
      programs,
      programs.init(),
      shape,
      range(8),
      completions=completions,
      completion_lengths=np.full(8, 3, np.int32),
      context_lengths=np.zeros(8, np.int32),
    )
  )
  assert got.own[0, 0, 0, :5].tolist() == [1, 1, 1, 0, 0]


def test_padding_rows_are_dropped(programs, shape):
  first = record(programs, programs.init(), shape, range(8))
  got = jax.device_get(record(programs, first, shape, [6, 1], turn=1))
  ran = np.zeros(8, bool)
  ran[[6, 1]] = True
  np.testing.assert_array_equal(got.executed[..., 1].reshape(-1), ran)
  assert (got.lengths[..., 1].reshape(-1) > 0).tolist() == ran.tolist()


def test_a_lost_sample_stays_lost(programs, shape):
  counts = np.ones(8, bool)
  counts[3] = False
  correct = np.ones(8, bool)
  state = record(
    programs, programs.init(), shape, range(8), counts=counts, correct=correct
  )
  state = record(programs, state, shape, [3, 4], turn=1)
  got = jax.device_get(state)
  assert got.ok.reshape(-1).tolist() == counts.tolist()
  assert not got.correct[0, 3, 0]  # whatever the harness said


@pytest.mark.parametrize("sources", [[-1, -1], [1, -1], [0, 1], [1, 1]])
def test_replaced_groups_come_whole(programs, shape, sources):
  a = record(programs, programs.init(), shape, range(8))
  b = record(
    programs,
    programs.init(),
    shape,
    range(8),
    correct=np.asarray([0] * 4 + [1] * 4, bool),
    context_lengths=np.full(8, 4, np.int32),
  )
  kept = jax.device_get(a)
  other = jax.device_get(b)
  got = jax.device_get(
    programs.replace_groups(a, b, np.asarray(sources, np.int32))
  )
  for place, source in enumerate(sources):
    expected = kept if source < 0 else other
    at = place if source < 0 else source
    for mine, theirs in zip(got, expected, strict=True):
      np.testing.assert_array_equal(mine[place], theirs[at])


@pytest.mark.parametrize("change", [dict(group_size=2), dict(num_turns=2)])
def test_groups_of_another_shape_are_refused(shape, change):
  other = buffer.init(dataclasses.replace(shape, **change))
  sources = np.zeros(shape.num_problems, np.int32)
  with pytest.raises(AssertionError, match="shapes"):
    buffer.replace_groups(buffer.init(shape), other, sources)


def test_the_schedule_reads_the_buffer(programs, shape):
  correct = np.asarray([1, 0, 0, 0, 1, 1, 1, 0], bool)
  state = record(programs, programs.init(), shape, range(8), correct=correct)
  goes_on = np.asarray(programs.goes_on(state, np.asarray([True, False])))
  assert goes_on[..., 1].reshape(-1).tolist() == [0, 1, 1, 1, 0, 0, 0, 0]


def test_init_is_empty(shape):
  got = buffer.init(shape)
  assert not got.executed.any() and got.ok.all() and not got.own.any()
  assert got.tokens.shape == (2, 4, 3, shape.segment_tokens)
