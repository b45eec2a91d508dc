"""The sampler's device side: what is run on rows, as pure functions.

State: all R = P * G rows of a rollout, each with its place in the caches. Rows
are left-aligned and padded on the right; each has its own length and its own
key, made from its problem, its sample, the turn and the position, so that a
completion depends neither on its neighbours nor on when it had which slot.
"""

import dataclasses
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from leap_jax import draw_kernels, draws
from leap_jax.models import attention, cache_rows, decoding, joined_layers
from leap_jax.types import RolloutShape

_TILE = 64  # keys


@dataclasses.dataclass(frozen=True)
class Settings:
  """How it is sampled and computed."""

  rule: draws.Rule
  stop_tokens: tuple[int, ...]  # sampled, stored and trained like others
  dtype: str = "float32"  # of weights and caches
  implementation: str = attention.XLA
  max_slots: int = 0  # of a decoding program; 0 = all rows
  # Decoding programs beside those of `RolloutShape.buckets`: each of about this
  # share of the slots of the next larger one (`slots.ladder`); 1 = none.
  slot_ratio: float = 1.0
  least_slots: int = 8
  idle_fraction: float = 1.0  # see `slots.plan`
  # XLA's attention costs what its keys are wide: a program for each multiple of
  # so many tokens; 0 = one for each turn. cuDNN's follows each row's length.
  prefix_step: int = 0
  prompts_per_call: int = 0  # prompts that are read at once; 0 = all
  # A group's rows share the keys and values of their prompt: less memory, and
  # less to read in each step. For cuDNN, and where every layer sees the whole
  # past.
  shares_prompts: bool = False
  # What lies between decoding's matrix products, as few kernels: see
  # `joined_layers`. For cuDNN.
  joins_kernels: bool = False
  draws_by_kernel: bool = False  # see `draw_kernels`
  # Of the attention of each row's new token; None = `implementation`. It may be
  # `attention.PALLAS` beside cuDNN.
  token_implementation: str | None = None


class SamplerState(NamedTuple):
  """Where the R rows stand. The last seven belong to the turn."""

  prompts: decoding.Prompts | None  # if they are shared
  caches: tuple[decoding.Cache, ...]  # per layer [R, S, K, H]
  lengths: jax.Array  # [R] int32 cached tokens, shared ones included
  logits: jax.Array  # [R, V] float32, for the next token
  limits: jax.Array  # [R] int32 cached tokens at which a row is full
  done: jax.Array  # [R] bool
  stopped: jax.Array  # [R] bool: ended with a stop token
  sampled: jax.Array  # [R] int32 tokens of this turn
  tokens: jax.Array  # [R, N] int32
  logprobs: jax.Array  # [R, N] float32
  log_kept: jax.Array  # [R, N] float32


class Ends(NamedTuple):
  """How a call of a decoding program leaves its B slots: the state's fields of
  those names, beside the state, so that no more than they need travel to the
  host. A slot without a row is done, and the rest of it means nothing."""

  done: jax.Array  # [B] bool
  stopped: jax.Array  # [B] bool
  sampled: jax.Array  # [B] int32
  tokens: jax.Array  # [B, N] int32
  logprobs: jax.Array  # [B, N] float32
  log_kept: jax.Array  # [B, N] float32


def weights_of(config, settings: Settings, params):
  """Parameters in the layout and the dtype of this sampler."""
  weights = decoding.weights_of(config, params, jnp.dtype(settings.dtype))
  if settings.implementation == attention.CUDNN:
    return decoding.side_by_side(weights)
  return weights


def row_keys(key, rows, group_size: int, turn):
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


def empty_state(config, shape: RolloutShape, settings: Settings):
  """A state of rows that have read nothing."""
  r, n = shape.num_rows, shape.max_new_tokens
  dtype = jnp.dtype(settings.dtype)
  prompts = None
  if settings.shares_prompts:
    p, t = shape.num_problems, shape.max_prompt_tokens
    prompts = decoding.Prompts(
      decoding.empty_caches(config, p, t, dtype), jnp.ones(p, jnp.int32)
    )
  return SamplerState(
    prompts=prompts,
    caches=decoding.empty_caches(config, r, room(shape, settings), dtype),
    lengths=jnp.zeros(r, jnp.int32),
    logits=jnp.zeros((r, config.vocab_size), jnp.float32),
    limits=jnp.zeros(r, jnp.int32),
    done=jnp.ones(r, bool),
    stopped=jnp.zeros(r, bool),
    sampled=jnp.zeros(r, jnp.int32),
    tokens=jnp.zeros((r, n), jnp.int32),
    logprobs=jnp.zeros((r, n), jnp.float32),
    log_kept=jnp.zeros((r, n), jnp.float32),
  )


def room(shape: RolloutShape, settings: Settings) -> int:
  """S: tokens for which each row has a place in the caches.

  One spare: a row that is full still writes somewhere when it idles. cuDNN
  takes keys in whole tiles.
  """
  tokens = shape.context_tokens(shape.num_turns - 1)
  if settings.shares_prompts:  # what comes behind them
    later = shape.max_new_tokens + shape.max_feedback_tokens
    tokens = min(tokens, shape.max_new_tokens + (shape.num_turns - 1) * later)
  tokens += 1
  if settings.implementation == attention.CUDNN:
    return -(-tokens // _TILE) * _TILE
  return tokens


def _begin_turn(shape, state, rows, lengths, logits):
  """Rows that have read something and may answer; those beyond R are none."""
  put = lambda old, new: old.at[rows].set(new, mode="drop")
  limits = jnp.minimum(
    lengths + shape.max_new_tokens, shape.context_tokens(shape.num_turns - 1)
  )
  return state._replace(
    lengths=put(state.lengths, lengths),
    logits=put(state.logits, logits),
    limits=put(state.limits, limits),
    done=put(state.done, lengths >= limits),
    stopped=put(state.stopped, False),
    sampled=put(state.sampled, 0),
    tokens=put(state.tokens, 0),
    logprobs=put(state.logprobs, 0.0),
    log_kept=put(state.log_kept, 0.0),
  )


def read_prompts(
  config, shape, settings, weights, state, tokens, lengths, problems
):
  """Reads prompts and begins the first turn of their groups.

  Args:
    config: ModelConfig.
    shape: sizes.
    settings: of the sampler.
    weights: of `decoding.weights_of`.
    state: donated.
    tokens: [C, max_prompt_tokens] right-padded.
    lengths: [C].
    problems: [C] in 0..P-1; beyond P for padding.
  """
  g = shape.group_size
  rows = problems[:, None] * g + jnp.arange(g)[None]
  shared = state.prompts
  hidden, caches = decoding.read_prompts(
    config,
    weights,
    state.caches if shared is None else shared.caches,
    tokens,
    lengths,
    rows if shared is None else problems[:, None],
    settings.implementation,
  )
  if shared is None:
    state = state._replace(caches=caches)
  else:
    known = shared.lengths.at[problems].set(lengths, mode="drop")
    state = state._replace(prompts=decoding.Prompts(caches, known))
  spread = lambda x: jnp.repeat(x, g, axis=0)
  return _begin_turn(
    shape,
    state,
    rows.reshape(-1),
    spread(lengths),
    spread(decoding.logits_of(weights, hidden)),
  )


def read_more(
  config, shape, settings, width, weights, state, rows, tokens, lengths
):
  """Rows read what they are told, and their next turn begins.

  Args:
    config: ModelConfig.
    shape: sizes.
    settings: of the sampler.
    width: the most tokens that any of them has then.
    weights: of `decoding.weights_of`.
    state: donated.
    rows: [B] places; beyond R for padding.
    tokens: [B, max_feedback_tokens] new context, right-padded.
    lengths: [B].
  """
  chex.assert_shape(tokens, (rows.shape[0], shape.max_feedback_tokens))
  chex.assert_equal_shape((rows, lengths))
  start = state.lengths.at[rows].get(mode="clip")
  hidden, caches = decoding.read_more(
    config,
    weights,
    state.caches,
    state.prompts,
    tokens,
    lengths,
    start,
    rows,
    width,
    settings.implementation,
  )
  return _begin_turn(
    shape,
    state._replace(caches=caches),
    rows,
    start + lengths,
    decoding.logits_of(weights, hidden),
  )


def decode(
  config,
  shape,
  settings,
  width,
  weights,
  state,
  key,
  rows,
  turn,
  leave_at,
  first_row=0,
):
  """Samples until no more than `leave_at` rows are unfinished.

  Args:
    config: ModelConfig.
    shape: sizes.
    settings: of the sampler.
    width: keys that XLA's attention looks at; a row that has more ends the
      call.
    weights: of `decoding.weights_of`.
    state: donated.
    key: of the rollout.
    rows: [B] row of each slot; beyond R for slots without one. With B = R,
      slot i has row i or none.
    turn: [] from 0.
    leave_at: [1] see above.
    first_row: of the rollout among these rows, if they are a share of it; a
      row's key is made from its place in the whole.

  Returns:
    (state, [1] int32 steps that were run, Ends of the slots).
  """
  batch, num_rows = rows.shape[0], shape.num_rows
  prompts = state.prompts
  fields = state._replace(prompts=None, caches=())
  if batch == num_rows:
    local = fields
  else:
    local = jax.tree.map(lambda x: x.at[rows].get(mode="clip"), fields)
  has_row = rows < num_rows
  in_whole = first_row + jnp.minimum(rows, num_rows - 1)
  keys = row_keys(key, in_whole, shape.group_size, turn)
  # Where the caches are: in place if attention follows lengths, else copied
  # together unless all of them take part.
  is_whole = batch == num_rows and width == room(shape, settings)
  stays = settings.implementation == attention.CUDNN or is_whole
  places = None
  if batch != num_rows and stays:
    slot_of = jnp.full(num_rows, batch, jnp.int32)
    slot_of = slot_of.at[rows].set(jnp.arange(batch), mode="drop")
    places = cache_rows.Places(rows, slot_of)
  home = None if batch == num_rows else rows
  caches = (
    state.caches if stays else cache_rows.gather(state.caches, home, width)
  )
  stops = jnp.asarray(settings.stop_tokens, jnp.int32)
  slot = jnp.arange(batch)
  masses_of = (draw_kernels if settings.draws_by_kernel else draws).log_masses

  def body(carry):
    step, local = carry
    position_keys = jax.vmap(jax.random.fold_in)(keys, local.sampled)
    token, logprob, log_kept = draws.draw(
      local.logits, position_keys, settings.rule, config.num_ids, masses_of
    )
    done = local.done
    token = jnp.where(done, 0, token)
    column = jnp.where(done, shape.max_new_tokens, local.sampled)
    put = lambda old, new: old.at[slot, column].set(new, mode="drop")
    hidden, caches = decoding.add_token(
      config,
      weights,
      local.caches,
      prompts,
      token,
      local.lengths,
      done,
      places,
      settings.token_implementation or settings.implementation,
      joined_layers.layers if settings.joins_kernels else decoding.layers,
    )
    lengths = local.lengths + ~done
    is_stop = jnp.isin(token, stops) & ~done
    return step + 1, SamplerState(
      prompts=None,
      caches=caches,
      lengths=lengths,
      logits=decoding.logits_of(weights, hidden),
      limits=local.limits,
      done=done | is_stop | (lengths >= local.limits),
      stopped=local.stopped | is_stop,
      sampled=local.sampled + ~done,
      tokens=put(local.tokens, token),
      logprobs=put(local.logprobs, logprob),
      log_kept=put(local.log_kept, log_kept),
    )

  def goes_on(carry):
    _, local = carry
    going = (~local.done).sum() > leave_at[0]
    if settings.implementation == attention.CUDNN:
      return going
    return going & (jnp.max(jnp.where(local.done, 0, local.lengths)) < width)

  step, local = jax.lax.while_loop(
    goes_on,
    body,
    (jnp.int32(0), local._replace(caches=caches, done=local.done | ~has_row)),
  )
  caches = local.caches
  if not stays:
    caches = cache_rows.scatter(state.caches, home, caches)
  local = local._replace(caches=())
  ends = Ends(*(getattr(local, name) for name in Ends._fields))
  if batch == num_rows:
    # Rows without a slot are as they were.
    local = local._replace(done=jnp.where(has_row, local.done, state.done))
    return local._replace(prompts=prompts, caches=caches), step[None], ends
  put = lambda old, new: old.at[rows].set(new, mode="drop")
  local = jax.tree.map(put, fields, local)
  return local._replace(prompts=prompts, caches=caches), step[None], ends
