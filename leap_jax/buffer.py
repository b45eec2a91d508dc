"""The rollout buffer: fixed-size arrays, written one turn at a time.

Functions take a buffer and return one (donated, jitted): the schedule of DCP is
a mask over it, never a change of shape.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from leap_jax import dcp
from leap_jax.types import Rollouts, RolloutShape


class Programs(NamedTuple):
  """The functions below, compiled for one rollout's sizes."""

  init: Callable[[], Rollouts]
  # [turn, batch]
  record_turn: Mapping[tuple[int, int], Callable[..., Rollouts]]
  replace_groups: Callable[..., Rollouts]
  goes_on: Callable[..., jax.Array]


def init(shape: RolloutShape) -> Rollouts:
  """An empty buffer."""
  p, g, t = shape.num_problems, shape.group_size, shape.num_turns
  segment = (p, g, t, shape.segment_tokens)
  return Rollouts(
    tokens=jnp.zeros(segment, jnp.int32),
    own=jnp.zeros(segment, bool),
    behavior_logprobs=jnp.zeros(segment, jnp.float32),
    lengths=jnp.zeros((p, g, t), jnp.int32),
    correct=jnp.zeros((p, g, t), bool),
    executed=jnp.zeros((p, g, t), bool),
    ok=jnp.ones((p, g), bool),
    speedup=jnp.zeros((p, g, t), jnp.float32),
  )


def record_turn(
  buffer: Rollouts,
  rows: jax.Array,
  context: jax.Array,
  context_lengths: jax.Array,
  completions: jax.Array,
  completion_lengths: jax.Array,
  logprobs: jax.Array,
  correct: jax.Array,
  counts: jax.Array,
  speedup: jax.Array,
  *,
  turn: int,
) -> Rollouts:
  """Writes one turn of the rows that ran.

  Args:
    buffer: donated.
    rows: [B] flat places p * G + g; P * G marks a padding row.
    context: [B, C] what the rows read before they answered (prompt, feedback).
    context_lengths: [B].
    completions: [B, N] what they sampled.
    completion_lengths: [B].
    logprobs: [B, N] of the sampled tokens.
    correct: [B] bool.
    counts: [B] bool, False where the harness failed.
    speedup: [B] float32.
    turn: which, from 0.

  Returns:
    The buffer.
  """
  p, g, _, length = buffer.tokens.shape
  batch = rows.shape[0]
  chex.assert_shape(
    (context_lengths, completion_lengths, correct, counts, speedup), (batch,)
  )
  chex.assert_shape((completions, logprobs), (batch, None))
  chex.assert_shape(context, (batch, None))
  position = jnp.broadcast_to(jnp.arange(length)[None], (batch, length))
  in_context = position < context_lengths[:, None]
  after = position - context_lengths[:, None]
  own = (after >= 0) & (after < completion_lengths[:, None])

  def place(from_context, from_completion):
    """Context, then completion right behind it, then zeros."""
    c = jnp.take_along_axis(
      from_context, jnp.minimum(position, from_context.shape[1] - 1), 1
    )
    n = jnp.take_along_axis(
      from_completion, jnp.clip(after, 0, from_completion.shape[1] - 1), 1
    )
    return jnp.where(in_context, c, jnp.where(own, n, 0))

  def write(array, values):
    flat = array.reshape(p * g, *array.shape[2:])
    flat = flat.at[rows, turn].set(values.astype(array.dtype), mode="drop")
    return flat.reshape(array.shape)

  executed = jnp.ones(batch, bool)
  ok = buffer.ok.reshape(-1)
  keeps = ok.at[rows].get(mode="fill", fill_value=True) & counts
  return buffer._replace(
    tokens=write(buffer.tokens, place(context, completions)),
    own=write(buffer.own, own),
    behavior_logprobs=write(
      buffer.behavior_logprobs,
      place(jnp.zeros_like(context, jnp.float32), logprobs),
    ),
    lengths=write(buffer.lengths, context_lengths + completion_lengths),
    correct=write(buffer.correct, correct & counts),
    executed=write(buffer.executed, executed),
    ok=ok.at[rows].set(keeps, mode="drop").reshape(p, g),
    speedup=write(buffer.speedup, speedup),
  )


def replace_groups(
  buffer: Rollouts, other: Rollouts, sources: jax.Array
) -> Rollouts:
  """Puts groups of another buffer in the place of own ones (refilling).

  Args:
    buffer: donated.
    other: of the same shape.
    sources: [P] int32, for each problem of `buffer` the group of `other` that
      takes its place, or -1 to keep it.

  Returns:
    The buffer.
  """
  chex.assert_trees_all_equal_shapes_and_dtypes(buffer, other)
  keep = sources < 0
  index = jnp.maximum(sources, 0)

  def choose(own, theirs):
    mask = keep.reshape((-1,) + (1,) * (own.ndim - 1))
    return jnp.where(jnp.broadcast_to(mask, own.shape), own, theirs[index])

  return jax.tree.map(choose, buffer, other)


def goes_on(buffer: Rollouts, active: jax.Array) -> jax.Array:
  """The executed mask [P, G, T] that outcomes so far and the gate allow."""
  return dcp.executed_mask(buffer.correct, active, buffer.ok)


def compile_programs(shape: RolloutShape) -> Programs:
  """Compiles all of them; none ever compiles again."""
  abstract = jax.ShapeDtypeStruct
  make = jax.jit(lambda: init(shape)).lower().compile()
  buffer = jax.eval_shape(lambda: init(shape))
  records = {}
  for turn in range(shape.num_turns):
    width = shape.max_prompt_tokens if turn == 0 else shape.max_feedback_tokens
    for batch in shape.buckets(turn):
      vector = lambda dtype, b=batch: abstract((b,), dtype)
      matrix = lambda w, dtype, b=batch: abstract((b, w), dtype)
      records[turn, batch] = (
        jax.jit(
          lambda *arguments, turn=turn: record_turn(*arguments, turn=turn),
          donate_argnums=0,
        )
        .lower(
          buffer,
          vector(jnp.int32),
          matrix(width, jnp.int32),
          vector(jnp.int32),
          matrix(shape.max_new_tokens, jnp.int32),
          vector(jnp.int32),
          matrix(shape.max_new_tokens, jnp.float32),
          vector(jnp.bool_),
          vector(jnp.bool_),
          vector(jnp.float32),
        )
        .compile()
      )
  p = shape.num_problems
  return Programs(
    make,
    records,
    jax.jit(replace_groups, donate_argnums=0)
    .lower(buffer, buffer, abstract((p,), jnp.int32))
    .compile(),
    jax.jit(goes_on).lower(buffer, abstract((p,), jnp.bool_)).compile(),
  )
