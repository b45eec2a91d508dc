"""Attention of each row's newest token, as a kernel of Pallas.

A step of decoding reads every live key and value and does little with them: its
floor is the memory's bandwidth. Here one program serves all queries that look
at the same keys, the heads that share them and, of a shared prompt, those of
all its rows: keys are read once, in blocks of a row's live ones only, while a
softmax in float32 follows (Milakov & Gimelshein 2018, arXiv 1805.02867; Dao et
al. 2022, FlashAttention, arXiv 2205.14135). Where that makes too few programs
for a GPU, several share a row's keys and leave parts that are joined.

Shapes: R rows, P prompts of G = R / P rows each, N heads, K key-value heads, H
head size (a power of two from 16 on), S parts, M queries of one program.
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


class Parts(NamedTuple):
  """Softmaxes over a share of the keys each; weights are powers of two."""

  sums: jax.Array  # [S, R, N, H] float32 of weights times values
  denominators: jax.Array  # [S, R, N] float32 sums of weights
  maxima: jax.Array  # [S, R, N] float32 exponents that weights are relative to


def _plan(num_queries: int, head_size: int) -> Plan:
  if num_queries > _LEAST_QUERIES:
    return Plan(64, num_warps=4, num_stages=2)
  block_keys = 64 if head_size <= 64 else 32
  return Plan(block_keys, num_warps=2 if head_size <= 128 else 4, num_stages=2)


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
  """One of two, whatever stands before [R, N]."""
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


def _kernel(
  plan, group, scale, window, query, keys, values, lengths, before, *outputs
):
  kv_heads, size = keys.shape[2:]
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
  at = (unit * group + div(number, heads), kv_head * heads + rem(number, heads))
  at_wide = (*(x[:, None] for x in at), columns)
  wide = lambda mask: jnp.broadcast_to(mask[:, None], (mask.shape[0], size))

  def load(ref, index, mask):
    return triton.load(ref.at[index], mask=mask, other=0)

  q = load(query, at_wide, wide(is_query))
  length = lengths[unit]
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
    index = (unit, positions[:, None], kv_head, columns)
    k, v = (
      load(ref, index, wide(is_seen)).astype(q.dtype) for ref in (keys, values)
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
      of(before.sums, at_wide, wide(is_query)),
      of(before.denominators, at, is_query),
      of(before.maxima, at, is_query),
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


def _attend(
  query, keys, values, lengths, before, *, plan, num_parts, scale, window
):
  """[R, N, H] queries behind `before` -> [R, N, H]; Parts if `num_parts`."""
  rows, n, size = query.shape
  outputs = jax.ShapeDtypeStruct(query.shape, query.dtype)
  if num_parts is not None:
    of = lambda *shape: jax.ShapeDtypeStruct(
      (num_parts, rows, n, *shape), jnp.float32
    )
    outputs = Parts(of(size), of(), of())
  grid = (_num_programs(query, keys), num_parts or 1)
  group = rows // keys.shape[0]
  call = _compiled(plan, group, scale, window, grid, outputs)
  return call(query, keys, values, lengths, before)


def _num_queries(query, keys):
  """Queries that look at the same keys."""
  return query.shape[0] // keys.shape[0] * (query.shape[1] // keys.shape[2])


def _num_programs(query, keys):
  """Programs for each part."""
  queries = _num_queries(query, keys)
  return keys.shape[0] * keys.shape[2] * pl.cdiv(queries, _tile(queries))


def _layout(query, keys):
  """Plan and number of parts for [R, N, H] queries of [U, S, K, H] keys."""
  size = query.shape[-1]
  if size not in _SIZES:
    raise ValueError(f"heads of {size}; there is a kernel for {_SIZES}")
  plan = _plan(_num_queries(query, keys), size)
  return plan, _num_parts(_num_programs(query, keys), keys.shape[1])


def _whole(query, keys, values, lengths, before, **options):
  """[R, N, H] queries behind `before` -> [R, N, H]."""
  plan, num_parts = _layout(query, keys)
  attend = functools.partial(
    _attend, query, keys, values, lengths, plan=plan, **options
  )
  if num_parts == 1:
    return attend(before, num_parts=None)
  parts = _each(attend(None, num_parts=num_parts))
  parts += [] if before is None else _each(before)
  joined = functools.reduce(_joined, parts)
  return (joined.sums / joined.denominators[..., None]).astype(query.dtype)


def one_token(
  query: jax.Array,
  keys: jax.Array,
  values: jax.Array,
  lengths: jax.Array,
  *,
  scale: float,
  window: int | None,
) -> jax.Array:
  """See `attention.one_token`: [R, 1, N, H] -> [R, 1, N * H].

  Lengths are at least 1.
  """
  rows = query.shape[0]
  attended = _whole(
    query[:, 0], keys, values, lengths, None, scale=scale, window=window
  )
  return attended.reshape(rows, 1, -1)


def behind_prompts(
  query: jax.Array,
  own: tuple[jax.Array, jax.Array],
  own_lengths: jax.Array,
  prompts: tuple[jax.Array, jax.Array],
  prompt_lengths: jax.Array,
) -> jax.Array:
  """See `attention.behind_prompts`: [R, 1, N, H] -> [R, 1, N * H]."""
  rows, _, _, size = query.shape
  options = dict(scale=size**-0.5, window=None)
  query = query[:, 0]
  plan, num_parts = _layout(query, prompts[0])
  before = _attend(
    query,
    *prompts,
    prompt_lengths,
    None,
    plan=plan,
    num_parts=num_parts,
    **options,
  )
  attended = _whole(query, *own, own_lengths, before, **options)
  return attended.reshape(rows, 1, -1)
