"""Attention of each row's newest token, as a kernel of Pallas.

A step of decoding reads every live key and value and does little with them: its
floor is the memory's bandwidth. Here one program serves all queries that look
at the same keys, the heads that share them and, of a shared prompt, those of
all its rows: keys are read once, in blocks of a row's live ones only, while a
softmax in float32 follows (Milakov & Gimelshein 2018, arXiv 1805.02867; Dao et
al. 2022, FlashAttention, arXiv 2205.14135). Where that makes too few programs
for a GPU, several share a row's keys and leave parts that are joined.

Shapes: B slots with a query of N heads each; U units, each with keys of its own
and some queries (a slot with its one, or a prompt with those of its group); R
rows of L tokens in caches; K key-value heads, H head size, S parts.
"""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

_LEAST_QUERIES, _MOST_QUERIES = 16, 64  # of a program: rows of its products
# Parts are made until the programs are about as many as run at once on an H100
# or H200; none is of fewer keys.
_PROGRAMS, _LEAST_KEYS, _MOST_PARTS = 1056, 256, 16
_SIZES = (16, 32, 64, 128, 256)  # of heads: what Triton's products take
_MASKED = -1e30


class Plan(NamedTuple):
  """How a program reads its keys."""

  block_keys: int
  num_warps: int
  num_stages: int  # blocks on their way at once


class Past(NamedTuple):
  """What each of U units looks at."""

  keys: jax.Array  # [R, L, K, H]
  values: jax.Array  # [R, L, K, H]
  lengths: jax.Array  # [U] int32 tokens that are seen
  rows: jax.Array | None = None  # [U] int32 of the units; None if U = R
  # [U * G] int32 slots of the units' queries, unit by unit, beyond B where
  # there is none; None if slot i has query i.
  slots: jax.Array | None = None


class Parts(NamedTuple):
  """Softmaxes over a share of the keys each; weights are powers of two."""

  sums: jax.Array  # [S, B, N, H] float32 of weights times values
  denominators: jax.Array  # [S, B, N] float32 sums of weights
  maxima: jax.Array  # [S, B, N] float32 exponents that weights are relative to


def _plan(num_queries: int, head_size: int) -> Plan:
  # The fastest of a dozen each on an H200, 512 and 1,024 rows (LOG.md).
  if num_queries > _LEAST_QUERIES:
    return Plan(32, num_warps=4, num_stages=3)
  if head_size <= 64:
    return Plan(64, num_warps=2, num_stages=2)
  return Plan(
    32,
    num_warps=2 if head_size <= 128 else 4,
    num_stages=3 if head_size <= 128 else 2,
  )


def _num_parts(programs: int, num_keys: int) -> int:
  parts = 1
  while (
    parts < _MOST_PARTS
    and 2 * parts * programs <= _PROGRAMS
    and num_keys >= 2 * parts * _LEAST_KEYS
  ):
    parts *= 2
  return parts


def _joined(first: Parts, second: Parts) -> Parts:
  """One of two, whatever stands before [B, N]."""
  top = jnp.maximum(first.maxima, second.maxima)
  shares = [jnp.exp2(x.maxima - top) for x in (first, second)]
  return Parts(
    first.sums * shares[0][..., None] + second.sums * shares[1][..., None],
    first.denominators * shares[0] + second.denominators * shares[1],
    top,
  )


def _each(parts: Parts) -> list[Parts]:
  return [
    jax.tree.map(lambda x, i=i: x[i], parts) for i in range(len(parts.sums))
  ]


def _group(query, past):
  """Queries that a unit may have."""
  queries = len(query) if past.slots is None else past.slots.size
  return queries // past.lengths.size


def _kernel(plan, group, scale, window, query, past, before, *outputs):
  num_rows, _, kv_heads, size = past.keys.shape
  heads = query.shape[1] // kv_heads  # that share keys
  tile = _tile(group * heads)
  num_tiles = pl.cdiv(group * heads, tile)
  num_parts = pl.num_programs(1)
  div, rem = jax.lax.div, jax.lax.rem
  program, part = pl.program_id(0), pl.program_id(1)
  kv_head, rest = rem(program, kv_heads), div(program, kv_heads)
  unit, first_query = div(rest, num_tiles), rem(rest, num_tiles) * tile

  columns = jnp.arange(size)[None]
  number = first_query + jnp.arange(tile)
  is_query = number < group * heads
  slot = unit * group + div(number, heads)
  if past.slots is not None:
    none = query.shape[0]
    slot = triton.load(past.slots.at[slot], mask=is_query, other=none)
    is_query &= slot < none
  at = (slot, kv_head * heads + rem(number, heads))
  at_wide = (*(x[:, None] for x in at), columns)
  wide = lambda mask: jnp.broadcast_to(mask[:, None], (mask.shape[0], size))

  def load(ref, index, mask):
    return triton.load(ref.at[index], mask=mask, other=0)

  q = load(query, at_wide, wide(is_query))
  length = past.lengths[unit]
  row, has_before = unit, is_query
  if past.rows is not None:  # what has no row looks at any, and at no prompt
    row = jnp.clip(past.rows[unit], 0, num_rows - 1)
    has_before &= past.rows[unit] < num_rows
  start = 0 if window is None else jnp.maximum(length - window, 0)
  first = div(start, plan.block_keys) if window is not None else 0
  end = div(length + (plan.block_keys - 1), plan.block_keys)
  share = div(end - first + (num_parts - 1), num_parts)
  first = first + part * share
  end = jnp.minimum(first + share, end)

  def add_block(block, state):
    positions = block * plan.block_keys + jnp.arange(plan.block_keys)
    is_seen = positions < length
    if window is not None:
      is_seen &= positions >= start
    index = (row, positions[:, None], kv_head, columns)
    k, v = (
      load(ref, index, wide(is_seen)).astype(q.dtype)
      for ref in (past.keys, past.values)
    )
    scores = _dot(q, k, 1) * (scale * math.log2(math.e))
    scores = jnp.where(is_seen[None], scores, _MASKED)
    top = jnp.maximum(state.maxima, scores.max(1))
    weights, fade = (
      jnp.exp2(scores - top[:, None]),
      jnp.exp2(state.maxima - top),
    )
    return Parts(
      state.sums * fade[:, None] + _dot(weights.astype(q.dtype), v, 0),
      state.denominators * fade + weights.sum(1),
      top,
    )

  zeros = jnp.zeros(tile, jnp.float32)
  state = Parts(jnp.zeros((tile, size), jnp.float32), zeros, zeros + _MASKED)
  for i in range(0 if before is None else before.sums.shape[0]):
    of = lambda ref, at, mask, i=i: load(ref, (i, *at), mask)
    more = Parts(
      of(before.sums, at_wide, wide(has_before)),
      of(before.denominators, at, has_before),
      of(before.maxima, at, has_before),
    )
    state = _joined(state, more)
  state = jax.lax.fori_loop(first, end, add_block, state)

  def store(ref, x, *part):
    index, mask = (at_wide, wide(is_query)) if x.ndim == 2 else (at, is_query)
    triton.store(ref.at[(*part, *index)], x.astype(ref.dtype), mask=mask)

  if len(outputs) == 1:
    return store(outputs[0], state.sums / state.denominators[:, None])
  for ref, x in zip(outputs, state, strict=True):
    store(ref, x, part)


def _dot(a, b, contracted):
  dimensions = (((1,), (contracted,)), ((), ()))
  return jax.lax.dot_general(
    a, b, dimensions, preferred_element_type=jnp.float32
  )


def _tile(num_queries):
  return min(
    max(pl.next_power_of_2(num_queries), _LEAST_QUERIES), _MOST_QUERIES
  )


@functools.cache
def _compiled(plan, group, scale, window, grid, outputs):
  """Under its own `jit`: a program lowers it once for all layers."""
  call = pl.pallas_call(
    functools.partial(_kernel, plan, group, scale, window),
    grid=grid,
    out_shape=outputs,
    compiler_params=triton.CompilerParams(
      num_warps=plan.num_warps, num_stages=plan.num_stages
    ),
    interpret=jax.default_backend() != "gpu",
  )
  return jax.jit(call)


def _attend(query, past, before, *, plan, num_parts, scale, window):
  """[B, N, H] queries behind `before` -> [B, N, H]; Parts if `num_parts`."""
  slots, n, size = query.shape
  outputs = jax.ShapeDtypeStruct(query.shape, query.dtype)
  if num_parts is not None:
    of = lambda *shape: jax.ShapeDtypeStruct(
      (num_parts, slots, n, *shape), jnp.float32
    )
    outputs = Parts(of(size), of(), of())
  grid = (_num_programs(query, past), num_parts or 1)
  call = _compiled(plan, _group(query, past), scale, window, grid, outputs)
  return call(query, past, before)


def _num_queries(query, past):
  """Queries that look at the same keys."""
  return _group(query, past) * (query.shape[1] // past.keys.shape[2])


def _num_programs(query, past):
  """Programs for each part."""
  queries = _num_queries(query, past)
  tiles = pl.cdiv(queries, _tile(queries))
  return past.lengths.size * past.keys.shape[2] * tiles


def _layout(query, past):
  """How [B, N, H] queries are attended: a plan and a number of parts."""
  size = query.shape[-1]
  if size not in _SIZES:
    raise ValueError(f"heads of {size}; there is a kernel for {_SIZES}")
  num_parts = _num_parts(_num_programs(query, past), past.keys.shape[1])
  plan = _plan(_num_queries(query, past), size)
  return dict(plan=plan, num_parts=num_parts)


def _whole(query, past, before, **options):
  """[B, N, H] queries behind `before` -> [B, N, H]."""
  options |= _layout(query, past)
  if options["num_parts"] == 1:
    return _attend(query, past, before, **options | dict(num_parts=None))
  parts = _each(_attend(query, past, None, **options))
  parts += [] if before is None else _each(before)
  joined = functools.reduce(_joined, parts)
  return (joined.sums / joined.denominators[..., None]).astype(query.dtype)


def one_token(
  query: jax.Array, past: Past, *, scale: float, window: int | None
) -> jax.Array:
  """See `attention.one_token`: [B, 1, N, H] -> [B, 1, N * H]."""
  attended = _whole(query[:, 0], past, None, scale=scale, window=window)
  return attended.reshape(query.shape[0], 1, -1)


def behind_prompts(query: jax.Array, own: Past, prompts: Past) -> jax.Array:
  """See `attention.behind_prompts`: [B, 1, N, H] -> [B, 1, N * H].

  What has no slot among the prompts' queries costs nothing. What has no row
  among `own` gets numbers that mean nothing.
  """
  slots, _, _, size = query.shape
  query, options = query[:, 0], dict(scale=size**-0.5, window=None)
  before = _attend(query, prompts, None, **_layout(query, prompts), **options)
  return _whole(query, own, before, **options).reshape(slots, 1, -1)
