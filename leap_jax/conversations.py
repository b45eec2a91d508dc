"""Conversations to rows for the warm start (supervised)."""

from collections.abc import Sequence

import numpy as np

from leap_jax.batching import Row
from leap_jax.tokenizer import Tokenizer
from leap_jax.types import Message


def make_row(
  tokenizer: Tokenizer, conversation: Sequence[Message], max_tokens: int
) -> Row | None:
  """One conversation as a row whose own tokens are the assistant's.

  Token for token what the sampler would have seen and produced. Weights are 1
  on own tokens here; the batch divides.

  Returns:
    None if the conversation is longer than `max_tokens`.
  """
  ids: list[int] = []
  own: list[bool] = []
  for message in conversation:
    if message.role == "assistant":
      part = tokenizer.completion(message.text)
    else:
      enter = tokenizer.context if ids else tokenizer.opening
      part = enter(message)
    ids += part
    own += [message.role == "assistant"] * len(part)
  if len(ids) > max_tokens:
    return None
  is_own = np.asarray(own)
  weights = is_own.astype(np.float32)
  zeros = np.zeros(len(ids), np.float32)
  return Row(np.asarray(ids, np.int32), is_own, weights, zeros, zeros)


def normalized(rows: Sequence[Row]) -> list[Row]:
  """Rows of one batch with weights that sum to 1: the mean over own tokens."""
  total = max(float(sum(row.weights.sum() for row in rows)), 1.0)
  return [
    Row(
      row.tokens,
      row.own,
      row.weights / np.float32(total),
      row.advantages,
      row.behavior_logprobs,
    )
    for row in rows
  ]


def at_step(
  rows: Sequence[Row], seed: int, step: int, batch_rows: int
) -> list[Row]:
  """The rows of one supervised step: a pure function, for exact resume."""
  per_epoch = max(len(rows) // batch_rows, 1)
  epoch, place = divmod(step, per_epoch)
  order = np.random.default_rng((seed, epoch)).permutation(len(rows))
  picked = order[place * batch_rows : (place + 1) * batch_rows]
  return [rows[int(i)] for i in picked]
