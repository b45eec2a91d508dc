"""Rollouts and advantages to the rows of an update.

A trajectory is one row: its turns one behind the other, exactly the ids that
the sampler saw. Rows whose advantages are all 0 teach nothing and are dropped;
the others are sorted into a few padded lengths. Host code, NumPy.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from leap_jax.types import Bucket, Rollouts


@dataclasses.dataclass(frozen=True)
class BucketSpec:
  """A padded length and the rows of a micro-batch at that length."""

  length: int
  micro_rows: int


@dataclasses.dataclass(frozen=True)
class Row:
  """One trajectory for the update; all arrays [length]."""

  tokens: np.ndarray
  own: np.ndarray
  weights: np.ndarray
  advantages: np.ndarray
  behavior_logprobs: np.ndarray


class RowTooLong(ValueError):
  """A row fits no bucket: the buckets do not suit the rollout's sizes."""


@dataclasses.dataclass(frozen=True)
class PackedBatch:
  """Buckets for `update`, and what was kept."""

  buckets: tuple[Bucket, ...]
  num_rows: int  # kept
  num_dropped: int  # executed rows with no advantage
  num_samples: int  # turns that the normalization counts
  num_tokens: int  # own tokens with weight
  real_tokens: int  # computed tokens of rows, by their lengths
  padded_tokens: int  # computed tokens, padding included

  @property
  def is_empty(self) -> bool:
    """Whether there is nothing to learn from."""
    return self.num_rows == 0


def bucket_specs(
  lengths: Sequence[int], micro_tokens: int, multiple: int
) -> tuple[BucketSpec, ...]:
  """Micro-batches of about `micro_tokens` tokens for each padded length.

  Args:
    lengths: padded lengths.
    micro_tokens: computed tokens of a micro-batch.
    multiple: rows of a micro-batch are a multiple of this (devices).
  """
  return tuple(
    BucketSpec(length, max(micro_tokens // length // multiple, 1) * multiple)
    for length in sorted(lengths)
  )


def _judged(rollouts):
  """[R, T] turns that have run and whose sample is not lost."""
  executed = np.asarray(rollouts.executed)
  executed = executed.reshape(-1, executed.shape[-1])
  return executed & np.asarray(rollouts.ok).reshape(-1, 1)


def _turn_advantages(rollouts, advantages):
  """[R, T], 0 where a turn was not judged."""
  judged = _judged(rollouts)
  return np.asarray(advantages).reshape(judged.shape) * judged


def _counts(rollouts, advantages, denominator):
  """[R, T] own tokens of the turns that the loss is divided by."""
  judged = _judged(rollouts)
  own = np.asarray(rollouts.own).sum(-1).reshape(judged.shape)
  turn_advantages = _turn_advantages(rollouts, advantages)
  return np.asarray(denominator(own, turn_advantages, judged))


def make_rows(
  rollouts: Rollouts,
  advantages: np.ndarray,
  *,
  normalization: Callable[..., np.ndarray],
  denominator: Callable[..., np.ndarray],
  max_new_tokens: int,
) -> tuple[list[Row], int]:
  """Concatenates turns into rows.

  Weights are made here, once for the batch, from what a filter or the gate
  left, with its true count.

  Args:
    rollouts: host arrays.
    advantages: [P, G, T].
    normalization: a function of `losses.NORMALIZATIONS`.
    denominator: a function of `losses.DENOMINATORS`.
    max_new_tokens: the constant of constant-length normalization.

  Returns:
    The rows that carry an advantage, and the number of executed rows that do
    not.
  """
  _, _, num_turns, length = rollouts.tokens.shape
  flat = lambda x: np.asarray(x).reshape(-1, *x.shape[2:])
  tokens, own = flat(rollouts.tokens), flat(rollouts.own)
  logprobs, lengths = flat(rollouts.behavior_logprobs), flat(rollouts.lengths)
  advantage = _turn_advantages(rollouts, advantages)
  # One sample is one turn. Those without advantage have no tokens that count,
  # whatever they are divided by.
  counts = _counts(rollouts, advantages, denominator)
  weights = np.asarray(normalization(counts, max_new_tokens), np.float32)
  weights = np.where(advantage != 0, weights, np.float32(0))
  rows = []
  for r in np.flatnonzero((advantage != 0).any(-1)):
    last = int(np.flatnonzero(advantage[r] != 0)[-1])
    parts = [slice(0, lengths[r, t]) for t in range(last + 1)]
    join = lambda x, r=r, parts=parts: np.concatenate(
      [x[r, t, part] for t, part in enumerate(parts)]
    )
    per_turn = lambda x, r=r: np.repeat(x[r, :, None], length, axis=1)[None]
    turn_weight, turn_advantage = per_turn(weights), per_turn(advantage)
    is_own = join(own)
    first = lambda x, parts=parts: np.concatenate(
      [x[0, t, part] for t, part in enumerate(parts)]
    )
    rows.append(
      Row(
        tokens=join(tokens),
        own=is_own,
        weights=np.where(is_own, first(turn_weight), 0).astype(np.float32),
        advantages=np.where(is_own, first(turn_advantage), 0).astype(
          np.float32
        ),
        behavior_logprobs=np.where(is_own, join(logprobs), 0).astype(
          np.float32
        ),
      )
    )
  num_executed = int(flat(rollouts.executed).any(-1).sum())
  return rows, num_executed - len(rows)


def _choose(
  lengths: Sequence[int], specs: Sequence[BucketSpec]
) -> list[list[int]]:
  """Which rows each bucket gets.

  Each row goes to the shortest bucket that holds it, unless a longer one has a
  micro-batch with empty places, which is computed anyway: it is filled up with
  the longest of the others.
  """
  rest = sorted(range(len(lengths)), key=lambda i: lengths[i])
  chosen = []
  shorter = [0, *(spec.length for spec in specs[:-1])]
  for spec, below in reversed(list(zip(specs, shorter, strict=True))):
    num_own = sum(lengths[i] > below for i in rest)
    taken = min(-(-num_own // spec.micro_rows) * spec.micro_rows, len(rest))
    chosen.append(sorted(rest[len(rest) - taken :]))
    del rest[len(rest) - taken :]
  return chosen[::-1]


def pack_rows(
  rows: Sequence[Row], specs: Sequence[BucketSpec], max_rows: int
) -> tuple[tuple[Bucket, ...], int]:
  """Sorts rows into buckets of fixed shape.

  Args:
    rows: any number up to `max_rows`.
    specs: ascending lengths.
    max_rows: the most rows that any bucket must hold; fixes the shapes.

  Returns:
    One Bucket for each spec, and the number of computed tokens.

  Raises:
    RowTooLong: a row is longer than the last bucket.
  """
  lengths = [len(row.tokens) for row in rows]
  if max(lengths, default=0) > specs[-1].length:
    raise RowTooLong(
      f"a row of {max(lengths)} tokens; the longest bucket has "
      f"{specs[-1].length}"
    )
  buckets, padded = [], 0
  for spec, chosen in zip(specs, _choose(lengths, specs), strict=True):
    members_of = [rows[i] for i in chosen]
    num_micro = -(-max_rows // spec.micro_rows)
    shape = (num_micro * spec.micro_rows, spec.length)
    arrays = {
      "tokens": np.zeros(shape, np.int32),
      "own": np.zeros(shape, bool),
      "weights": np.zeros(shape, np.float32),
      "advantages": np.zeros(shape, np.float32),
      "behavior_logprobs": np.zeros(shape, np.float32),
    }
    row_lengths = np.zeros(shape[0], np.int32)
    for i, row in enumerate(members_of):
      row_lengths[i] = len(row.tokens)
      for name, array in arrays.items():
        values = getattr(row, name)
        array[i, : len(values)] = values
    used = -(-len(members_of) // spec.micro_rows)
    padded += used * spec.micro_rows * spec.length
    split = (num_micro, spec.micro_rows, spec.length)
    buckets.append(
      Bucket(
        **{name: array.reshape(split) for name, array in arrays.items()},
        lengths=row_lengths.reshape(split[:2]),
        num_micro=np.int32(used),
      )
    )
  return tuple(buckets), padded


def make_batch(
  rollouts: Rollouts,
  advantages: np.ndarray,
  specs: Sequence[BucketSpec],
  *,
  normalization: Callable[..., np.ndarray],
  denominator: Callable[..., np.ndarray],
  max_new_tokens: int,
) -> PackedBatch:
  """`make_rows` and `pack_rows` in one."""
  rows, num_dropped = make_rows(
    rollouts,
    advantages,
    normalization=normalization,
    denominator=denominator,
    max_new_tokens=max_new_tokens,
  )
  p, g = np.asarray(rollouts.ok).shape
  buckets, padded = pack_rows(rows, specs, p * g)
  return PackedBatch(
    buckets,
    len(rows),
    num_dropped,
    int((_counts(rollouts, advantages, denominator) > 0).sum()),
    int(sum((row.weights > 0).sum() for row in rows)),
    sum(len(row.tokens) for row in rows),
    padded,
  )
