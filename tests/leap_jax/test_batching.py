"""Rollouts to rows: own tokens, weights, buckets."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from leap_jax import batching, losses
from leap_jax.types import Rollouts


def small_rollouts():
  """One problem, three samples, two turns, segments of up to six tokens.

  Sample 0: turn 1 only. Sample 1: both turns. Sample 2: turn 1, lost.
  """
  tokens = np.zeros((1, 3, 2, 6), np.int32)
  own = np.zeros((1, 3, 2, 6), bool)
  logprobs = np.full((1, 3, 2, 6), np.nan, np.float32)  # unread where not own
  lengths = np.zeros((1, 3, 2), np.int32)
  executed = np.zeros((1, 3, 2), bool)

  def put(g, t, context, answer, values):
    n = len(context) + len(answer)
    tokens[0, g, t, :n] = context + answer
    own[0, g, t, len(context) : n] = True
    logprobs[0, g, t, len(context) : n] = values
    lengths[0, g, t] = n
    executed[0, g, t] = True

  put(0, 0, [1, 2], [11, 12], [-0.1, -0.2])
  put(1, 0, [1, 2], [21], [-0.3])
  put(1, 1, [3], [22, 23, 24], [-0.4, -0.5, -0.6])
  put(2, 0, [1, 2], [31], [-0.7])
  correct = np.zeros((1, 3, 2), bool)
  return Rollouts(
    tokens,
    own,
    logprobs,
    lengths,
    correct,
    executed,
    np.asarray([[True, True, False]]),
    np.zeros((1, 3, 2), np.float32),
  )


ADVANTAGES = np.asarray([[[1.0, 0.0], [-0.5, 0.25], [9.0, 0.0]]], np.float32)


def rows_of(
  advantages, normalization="constant_length", denominator="with_advantage"
):
  return batching.make_rows(
    small_rollouts(),
    advantages,
    normalization=losses.NORMALIZATIONS[normalization],
    denominator=losses.DENOMINATORS[denominator],
    max_new_tokens=4,
  )


@pytest.mark.covers("P06")
def test_turns_are_joined_as_the_sampler_saw_them():
  rows, _ = rows_of(ADVANTAGES)
  assert [row.tokens.tolist() for row in rows] == [
    [1, 2, 11, 12],
    [1, 2, 21, 3, 22, 23, 24],
  ]
  # Prompts and feedback are not the policy's own.
  assert rows[1].own.tolist() == [0, 0, 1, 0, 1, 1, 1]


@pytest.mark.covers("P08")
def test_every_own_token_carries_its_turns_advantage():
  rows, _ = rows_of(ADVANTAGES)
  assert rows[1].advantages.tolist() == [0, 0, -0.5, 0, 0.25, 0.25, 0.25]
  np.testing.assert_allclose(
    rows[1].behavior_logprobs, [0, 0, -0.3, 0, -0.4, -0.5, -0.6], rtol=1e-6
  )


def test_weights_follow_the_named_normalization():
  # Three turns count, with 2, 1 and 3 own tokens; max_new_tokens is 4.
  rows, _ = rows_of(ADVANTAGES, "constant_length")
  np.testing.assert_allclose(rows[1].weights[[2, 4]], [1 / 12, 1 / 12])
  rows, _ = rows_of(ADVANTAGES, "sequence_mean")
  np.testing.assert_allclose(rows[1].weights[[2, 4]], [1 / 3, 1 / 9])
  rows, _ = rows_of(ADVANTAGES, "token_mean")
  np.testing.assert_allclose(rows[1].weights[[2, 4]], [1 / 6, 1 / 6])
  for row in rows:
    assert (row.weights[~row.own] == 0).all()


@pytest.mark.parametrize("name", losses.NORMALIZATIONS)
@pytest.mark.parametrize("num_zero", [0, 1, 2])
@pytest.mark.covers("P11")
def test_the_denominator_counts_turns_with_an_advantage(name, num_zero):
  advantages = ADVANTAGES.copy()
  for place in [(0, 1, 0), (0, 0, 0)][:num_zero]:
    advantages[place] = 0
  rollouts = small_rollouts()
  batch = batching.make_batch(
    rollouts,
    advantages,
    SPECS,
    normalization=losses.NORMALIZATIONS[name],
    denominator=losses.with_advantage,
    max_new_tokens=4,
  )
  # Sample 2 is lost whatever its advantage.
  assert batch.num_samples == 3 - num_zero
  weights = sum(b.weights.sum() for b in batch.buckets)
  tokens = {0: 6, 1: 5, 2: 3}[num_zero]
  assert batch.num_tokens == tokens
  expected = {
    "token_mean": 1.0,
    "sequence_mean": 1.0,
    "constant_length": tokens / (4 * batch.num_samples),
  }
  np.testing.assert_allclose(weights, expected[name], rtol=1e-6)


@pytest.mark.covers("P11")
def test_all_judged_turns_may_be_the_denominator():
  # 2, 1 and 3 own tokens were judged; the first two turns teach nothing.
  advantages = np.asarray([[[0, 0], [0, 0.25], [9, 0]]], np.float32)
  weights = {}
  for name in losses.NORMALIZATIONS:
    (row,), num_dropped = rows_of(advantages, name, "all_judged")
    assert num_dropped == 2
    # The turn before is own and was judged, and has no part in the loss.
    assert row.own[2] and row.weights[2] == 0
    (weights[name],) = set(row.weights[-3:].tolist())
  np.testing.assert_allclose(weights["token_mean"], 1 / 6, rtol=1e-6)
  np.testing.assert_allclose(weights["sequence_mean"], 1 / 9, rtol=1e-6)
  np.testing.assert_allclose(weights["constant_length"], 1 / 12, rtol=1e-6)


@hypothesis.given(st.lists(st.booleans(), min_size=3, max_size=3))
def test_fewer_turns_with_an_advantage_leave_the_others_their_weight(kept):
  mask = np.asarray([[[kept[0], False], [kept[1], kept[2]], [False, False]]])
  all_rows, _ = rows_of(ADVANTAGES, denominator="all_judged")
  rows, _ = rows_of(np.where(mask, ADVANTAGES, 0), denominator="all_judged")
  full = {row.tokens[2]: row.weights for row in all_rows}
  for row in rows:
    counts = row.advantages != 0
    known = full[row.tokens[2]][: len(counts)]
    np.testing.assert_array_equal(row.weights[counts], known[counts])


@pytest.mark.parametrize("padding_id", [0, 11, 22])
@pytest.mark.covers("P09")
def test_real_tokens_are_told_by_length_and_not_by_id(padding_id):
  # The policy may sample the id of the padding.
  rollouts = small_rollouts()
  tokens = rollouts.tokens
  rollouts = rollouts._replace(tokens=np.where(tokens == padding_id, 0, tokens))
  batch = batching.make_batch(
    rollouts,
    ADVANTAGES,
    SPECS,
    normalization=losses.constant_length,
    denominator=losses.with_advantage,
    max_new_tokens=4,
  )
  # Rows of 4 and 7 tokens: both in one micro-batch of 2 x 8.
  assert batch.real_tokens == 11 and batch.padded_tokens == 16


def test_lost_samples_and_rows_without_advantage_are_dropped():
  rows, num_dropped = rows_of(ADVANTAGES)
  assert len(rows) == 2 and num_dropped == 1  # sample 2 is lost
  rows, num_dropped = rows_of(np.zeros_like(ADVANTAGES))
  assert rows == [] and num_dropped == 3


def test_turns_behind_the_last_advantage_are_cut_off():
  advantages = ADVANTAGES.copy()
  advantages[0, 1, 1] = 0
  rows, _ = rows_of(advantages)
  assert rows[1].tokens.tolist() == [1, 2, 21]


def test_a_turn_without_advantage_stays_as_context():
  advantages = ADVANTAGES.copy()
  advantages[0, 1, 0] = 0
  rows, _ = rows_of(advantages)
  assert rows[1].tokens.tolist() == [1, 2, 21, 3, 22, 23, 24]
  assert rows[1].weights[2] == 0 and rows[1].weights[4] > 0


def some_rows(lengths):
  rng = np.random.default_rng(0)
  make = lambda n: batching.Row(
    rng.integers(1, 9, n).astype(np.int32),
    np.ones(n, bool),
    np.full(n, 0.5, np.float32),
    np.ones(n, np.float32),
    np.zeros(n, np.float32),
  )
  return [make(n) for n in lengths]


SPECS = (batching.BucketSpec(4, 3), batching.BucketSpec(8, 2))


@hypothesis.given(st.lists(st.integers(1, 8), max_size=7))
@hypothesis.settings(deadline=None)
@pytest.mark.covers("P12")
def test_no_row_is_lost_and_padding_weighs_nothing(lengths):
  rows = some_rows(lengths)
  buckets, padded = batching.pack_rows(rows, SPECS, 7)
  seen = []
  for spec, bucket in zip(SPECS, buckets, strict=True):
    used = bucket.tokens[: bucket.num_micro].reshape(-1, spec.length)
    weights = bucket.weights.reshape(-1, spec.length)
    for row, w in zip(
      bucket.tokens.reshape(-1, spec.length), weights, strict=True
    ):
      n = int((w > 0).sum())
      if n:
        seen.append(tuple(row[:n]))
        assert (row[n:] == 0).all()
    # Rows beyond the counted micro-batches do not exist.
    assert (bucket.weights[bucket.num_micro :] == 0).all()
    assert len(used) % spec.micro_rows == 0
  assert sorted(seen) == sorted(tuple(r.tokens.tolist()) for r in rows)
  assert padded >= sum(lengths)


@hypothesis.given(st.lists(st.integers(1, 8), max_size=9))
@hypothesis.settings(deadline=None)
def test_a_micro_batch_that_is_computed_is_filled(lengths):
  buckets, padded = batching.pack_rows(some_rows(lengths), SPECS, 9)
  held = [bucket.lengths[bucket.lengths > 0].tolist() for bucket in buckets]
  num_long = sum(n > 4 for n in lengths)
  used = -(-num_long // 2)
  # The long ones, and as many of the longest others as have a place there.
  assert sorted(held[1]) == sorted(lengths)[-2 * used :] * (used > 0)
  num_left = len(lengths) - len(held[1])
  assert padded == used * 16 + -(-num_left // 3) * 12
  # Never more than each row in its own bucket.
  assert padded <= used * 16 + -(-(len(lengths) - num_long) // 3) * 12
  assert [int(bucket.num_micro) for bucket in buckets] == [
    -(-num_left // 3),
    used,
  ]


@pytest.mark.covers("P28")
def test_shapes_do_not_depend_on_the_rows():
  shape_of = lambda rows: [
    [np.shape(x) for x in b] for b in batching.pack_rows(rows, SPECS, 7)[0]
  ]
  assert (
    shape_of([])
    == shape_of(some_rows([1, 8, 5]))
    == shape_of(some_rows([8] * 7))
  )


def test_a_row_that_fits_nowhere_is_an_error():
  with pytest.raises(batching.RowTooLong, match="9 tokens.*has 8"):
    batching.pack_rows(some_rows([9]), SPECS, 7)


@pytest.mark.parametrize("devices", [1, 2, 8])
@pytest.mark.covers("P12")
def test_micro_batches_divide_over_the_devices(devices):
  for spec in batching.bucket_specs((16, 100, 333), 1000, devices):
    assert spec.micro_rows % devices == 0 and spec.micro_rows > 0
