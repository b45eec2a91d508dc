"""Samples completions with a key-value cache that lives across turns.

Every program has a fixed shape and is compiled once, before the first use: one
prefill, then for each turn one decoding program for each batch bucket, and for
each later turn one program that picks the rows that go on, makes room in their
caches and reads their feedback. Rows are left-aligned and padded on the right;
each has its own length and its own key, so that a completion does not depend
on its neighbours.

The stored log-probability is that of `losses.token_logprobs`: the sampled token
under the temperature-scaled softmax over the whole vocabulary.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from leap_jax.models import transformer
from leap_jax.types import RolloutShape


class SamplerState(NamedTuple):
  """Where B conversations stand."""

  caches: tuple[transformer.Cache, ...]  # per layer [B, S, K, H]
  lengths: jax.Array  # [B] int32 cached tokens
  logits: jax.Array  # [B, V] float32, for the next token


class Completions(NamedTuple):
  """Answers of one turn. Tokens behind a row's length are 0."""

  tokens: jax.Array  # [B, N] int32, the stop token included
  logprobs: jax.Array  # [B, N] float32
  lengths: jax.Array  # [B] int32
  stopped: jax.Array  # [B] bool: ended with a stop token
  num_steps: jax.Array  # [] int32 decoding steps that were run


class Sampler(NamedTuple):
  """Compiled programs."""

  prefill: Callable[..., SamplerState]
  # [turn, batch of the turn before, batch]
  next_turn: Mapping[tuple[int, int, int], Callable[..., SamplerState]]
  # [turn, batch]
  decode: Mapping[
    tuple[int, int], Callable[..., tuple[Completions, SamplerState]]
  ]


def _last(hidden, lengths):
  """Hidden state of each row's last new token: [B, T, D] -> [B, D]."""
  index = jnp.maximum(lengths - 1, 0)
  return jnp.take_along_axis(hidden, index[:, None, None], axis=1)[:, 0]


def prefill(config, shape: RolloutShape, params, tokens, lengths):
  """Reads P prompts and hands each to the G rows of its group.

  Args:
    config: ModelConfig.
    shape: sizes.
    params: of the model.
    tokens: [P, max_prompt_tokens] right-padded.
    lengths: [P].

  Returns:
    SamplerState of P * G rows; a group's rows are neighbours.
  """
  p = shape.num_problems
  # One spare slot: a row that is full still writes somewhere when it idles.
  room = shape.context_tokens(0) + 1
  caches = transformer.empty_caches(config, p, room)
  start = jnp.zeros(p, jnp.int32)
  hidden, caches = transformer.extend(config, params, caches, tokens, start)
  logits = transformer.logits_of(config, params, _last(hidden, lengths))
  repeat = lambda x: jnp.repeat(x, shape.group_size, axis=0)
  return SamplerState(
    jax.tree.map(repeat, caches), repeat(lengths), repeat(logits)
  )


def next_turn(
  config, shape: RolloutShape, turn: int, params, state, rows, tokens, lengths
):
  """Picks rows, makes room and reads what they are told.

  Args:
    config: ModelConfig.
    shape: sizes.
    turn: the turn to come, from 1.
    params: of the model.
    state: SamplerState of the turn before.
    rows: [B] places in `state`; padding repeats any row.
    tokens: [B, max_feedback_tokens] new context, right-padded.
    lengths: [B].

  Returns:
    SamplerState of B rows.
  """
  chex.assert_shape(tokens, (rows.shape[0], shape.max_feedback_tokens))
  chex.assert_equal_shape((rows, lengths))
  old = state.caches[0].keys.shape[1]
  room = shape.context_tokens(turn) + 1
  # Reading pads to the full feedback width, which may reach past the room.
  reach = old - 1 + tokens.shape[1]
  extra = max(room, reach) - old

  def pick(x):
    return jnp.pad(x[rows], ((0, 0), (0, extra), (0, 0), (0, 0)))

  caches = jax.tree.map(pick, state.caches)
  start = state.lengths[rows]
  hidden, caches = transformer.extend(config, params, caches, tokens, start)
  caches = jax.tree.map(lambda x: x[:, :room], caches)
  logits = transformer.logits_of(config, params, _last(hidden, lengths))
  return SamplerState(caches, start + lengths, logits)


def row_keys(key, rows, group_size: int, turn: int):
  """One PRNG key for each row, from its problem, its sample and the turn.

  Args:
    key: of the rollout.
    rows: [B] flat places p * G + g.
    group_size: G.
    turn: from 0.

  Returns:
    [B] keys; they do not depend on which rows share a batch.
  """

  def of_row(row):
    problem, sample = row // group_size, row % group_size
    folded = jax.random.fold_in(jax.random.fold_in(key, problem), sample)
    return jax.random.fold_in(folded, turn)

  return jax.vmap(of_row)(rows)


def decode(
  config,
  shape: RolloutShape,
  turn: int,
  params,
  state,
  key,
  rows,
  alive,
  *,
  temperature: float,
  stop_tokens: tuple[int, ...],
):
  """Samples until every row has stopped or is full.

  Args:
    config: ModelConfig.
    shape: sizes.
    turn: which, from 0.
    params: of the model.
    state: SamplerState of B rows.
    key: of the rollout.
    rows: [B] flat places of the rows.
    alive: [B] bool; padding rows are False and sample nothing.
    temperature: of the softmax.
    stop_tokens: ids that end a row; sampled, stored and trained like others.

  Returns:
    Completions and the state behind them.
  """
  batch, room = alive.shape[0], state.caches[0].keys.shape[1]
  chex.assert_shape((rows, alive, state.lengths), (batch,))
  most = shape.max_new_tokens
  full = jnp.minimum(state.lengths + most, room - 1)
  keys = row_keys(key, rows, shape.group_size, turn)

  def sample(logits, step):
    scaled = logits.astype(jnp.float32) / temperature
    position_keys = jax.vmap(jax.random.fold_in, (0, None))(keys, step)
    token = jax.vmap(jax.random.categorical)(position_keys, scaled)
    chosen = jnp.take_along_axis(scaled, token[:, None], 1)[:, 0]
    return token, chosen - jax.nn.logsumexp(scaled, -1)

  def body(carry):
    step, state, done, stopped, tokens, logprobs = carry
    token, logprob = sample(state.logits, step)
    token = jnp.where(done, 0, token).astype(jnp.int32)
    column = lambda x: x[:, None]
    tokens = jax.lax.dynamic_update_slice(tokens, column(token), (0, step))
    logprobs = jax.lax.dynamic_update_slice(
      logprobs, column(jnp.where(done, 0.0, logprob)), (0, step)
    )
    hidden, caches = transformer.extend(
      config, params, state.caches, column(token), state.lengths
    )
    lengths = state.lengths + ~done
    is_stop = jnp.isin(token, jnp.asarray(stop_tokens)) & ~done
    stopped = stopped | is_stop
    done = done | is_stop | (lengths >= full)
    logits = transformer.logits_of(config, params, hidden[:, 0])
    state = SamplerState(caches, lengths, logits)
    return step + 1, state, done, stopped, tokens, logprobs

  def unfinished(carry):
    step, _, done, *_ = carry
    return (step < most) & ~done.all()

  begin = state.lengths
  carry = (
    jnp.int32(0),
    state,
    ~alive | (begin >= full),
    jnp.zeros(batch, bool),
    jnp.zeros((batch, most), jnp.int32),
    jnp.zeros((batch, most), jnp.float32),
  )
  step, state, _, stopped, tokens, logprobs = jax.lax.while_loop(
    unfinished, body, carry
  )
  lengths = state.lengths - begin
  return Completions(tokens, logprobs, lengths, stopped, step), state


def make_sampler(
  config: transformer.ModelConfig,
  shape: RolloutShape,
  params,
  *,
  temperature: float,
  stop_tokens: tuple[int, ...],
  on_compile: Callable[[str], None] = lambda name: None,
) -> Sampler:
  """Compiles every program of a rollout, the largest first.

  Args:
    config: sizes of the model.
    shape: sizes of the rollout.
    params: any parameters of the model (their shapes and shardings matter).
    temperature: of the softmax.
    stop_tokens: ids that end a completion.
    on_compile: told the name of each program before it is compiled.

  Returns:
    The programs. None of them ever compiles again.
  """
  abstract = lambda dims, dtype: jax.ShapeDtypeStruct(dims, dtype)
  params = jax.tree.map(
    lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding),
    params,
  )
  key_type = jax.random.key(0).dtype

  def state_for(turn, batch):
    room = shape.context_tokens(turn) + 1
    cache = (batch, room, config.num_kv_heads, config.head_size)
    one = transformer.Cache(
      abstract(cache, jnp.float32), abstract(cache, jnp.float32)
    )
    return SamplerState(
      (one,) * config.num_layers,
      abstract((batch,), jnp.int32),
      abstract((batch, config.vocab_size), jnp.float32),
    )

  jobs = []  # (size, turn, batch)
  for turn in range(shape.num_turns):
    for batch in shape.buckets(turn):
      jobs.append((batch * shape.context_tokens(turn), turn, batch))
  jobs.sort(reverse=True)

  decodes, nexts = {}, {}
  for _, turn, batch in jobs:
    on_compile(f"decode turn {turn + 1}, {batch} rows")

    def run_decode(params, state, key, rows, alive, turn=turn):
      return decode(
        config,
        shape,
        turn,
        params,
        state,
        key,
        rows,
        alive,
        temperature=temperature,
        stop_tokens=stop_tokens,
      )

    decodes[turn, batch] = (
      jax.jit(run_decode, donate_argnums=1)
      .lower(
        params,
        state_for(turn, batch),
        abstract((), key_type),
        abstract((batch,), jnp.int32),
        abstract((batch,), jnp.bool_),
      )
      .compile()
    )
  for turn in range(1, shape.num_turns):
    for before, batch in reversed(shape.transitions(turn)):
      on_compile(f"turn {turn + 1}, {before} to {batch} rows")

      def run_next(params, state, rows, tokens, lengths, turn=turn):
        return next_turn(
          config, shape, turn, params, state, rows, tokens, lengths
        )

      nexts[turn, before, batch] = (
        jax.jit(run_next)
        .lower(
          params,
          state_for(turn - 1, before),
          abstract((batch,), jnp.int32),
          abstract((batch, shape.max_feedback_tokens), jnp.int32),
          abstract((batch,), jnp.int32),
        )
        .compile()
      )
  on_compile("prefill")
  p = shape.num_problems
  run_prefill = (
    jax.jit(lambda params, tokens, n: prefill(config, shape, params, tokens, n))
    .lower(
      params,
      abstract((p, shape.max_prompt_tokens), jnp.int32),
      abstract((p,), jnp.int32),
    )
    .compile()
  )
  return Sampler(run_prefill, nexts, decodes)
