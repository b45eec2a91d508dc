"""From hidden states to log-probabilities of targets.

`whole` holds the logits of every position, [B, L, V] in float32: the plain
definition, for small vocabularies. `chunked` computes them for the positions
that count only, a few thousand at a time, forward and again in the backward
pass: at 150,000 ids the logits of 16,384 tokens alone are 10 GB.

B rows, L positions, D width, V vocabulary.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from leap_jax import losses
from leap_jax.models import transformer


class TokenStats(NamedTuple):
  """Of the sampling distribution, per target. Only `logprobs` has a gradient.

  Where `known` is False the others are 0.
  """

  logprobs: jax.Array  # [B, L] float32
  entropy: jax.Array  # [B, L] float32, nats
  known: jax.Array  # [B, L] bool


HeadFn = Callable[..., TokenStats]
"""(params, hidden [B, L, D], targets [B, L], mask [B, L]) -> TokenStats"""


def make_whole(
  config: transformer.ModelConfig,
  *,
  temperature: float,
  chunk_tokens: int,
  num_shards: int,
) -> HeadFn:
  """Every position at once; the mask changes nothing.

  Args:
    config: of the model.
    temperature: of sampling.
    chunk_tokens: of no use here.
    num_shards: likewise.
  """
  del chunk_tokens, num_shards

  def head(params, hidden, targets, mask):
    del mask
    logits = transformer.logits_of(config, params, hidden)
    return TokenStats(
      losses.token_logprobs(logits, targets, temperature=temperature),
      losses.entropy(logits, temperature=temperature),
      jnp.ones(targets.shape, bool),
    )

  return head


def make_chunked(
  config: transformer.ModelConfig,
  *,
  temperature: float,
  chunk_tokens: int,
  num_shards: int,
) -> HeadFn:
  """Only positions of the mask, `chunk_tokens` at a time.

  The number of chunks follows the number of positions at run time: no more
  logits are computed than there are targets, up to one chunk.

  Args:
    config: of the model.
    temperature: of sampling.
    chunk_tokens: positions whose logits exist at once, over all shards.
    num_shards: the rows lie on so many devices; positions are gathered on
      each of them, never between them.
  """
  size = max(chunk_tokens // num_shards, 1)

  def head(params, hidden, targets, mask):
    rows, length, width = hidden.shape
    if rows % num_shards:
      raise ValueError(f"{rows} rows do not divide over {num_shards} shards")
    fold = lambda x: x.reshape(num_shards, rows // num_shards * length, -1)
    stats = _chunked_stats(
      (config, temperature, size),
      transformer.head_of(params),
      fold(hidden),
      fold(targets)[..., 0],
      fold(mask)[..., 0],
    )
    return TokenStats(*(x.reshape(rows, length) for x in stats), known=mask)

  return head


HEADS = {"whole": make_whole, "chunked": make_chunked}


# Below: S shards, N positions of a shard, C positions of a chunk.


class _Order(NamedTuple):
  """Positions of the mask first."""

  index: jax.Array  # [S, N up to whole chunks] places in 0..N-1
  counts: jax.Array  # [S] positions of the mask
  num_chunks: jax.Array  # [] of the shard that has most


def _order(mask, size):
  index = jnp.argsort(~mask, axis=1, stable=True)
  counts = mask.sum(1)
  extra = -mask.shape[1] % size
  # Past the end: what is read there is not used, what is written is dropped.
  index = jnp.pad(index, ((0, 0), (0, extra)), constant_values=mask.shape[1])
  return _Order(index, counts, -(-counts.max() // size))


_take = jax.vmap(lambda x, index: x.at[index].get(mode="fill", fill_value=0))


def _chunk(order, hidden, targets, start, size):
  """Hidden states [S, C, D], targets [S, C] and whether they count [S, C]."""
  index = jax.lax.dynamic_slice_in_dim(order.index, start, size, 1)
  counts = start + jnp.arange(size)[None] < order.counts[:, None]
  return index, _take(hidden, index), _take(targets, index), counts


def _logits(config, hidden, table, temperature):
  """[S, C, V] float32, whatever the operands are."""
  logits = jnp.einsum(
    "scd,vd->scv", hidden, table, preferred_element_type=jnp.float32
  )
  return transformer.without_padding_ids(config, logits) / temperature


def _is_target(logits, targets):
  # A comparison, no gather: it divides over a vocabulary on several devices.
  return jnp.arange(logits.shape[-1])[None, None] == targets[..., None]


def _forward(static, table, hidden, targets, mask):
  config, temperature, size = static
  order = _order(mask, size)
  shape = order.index.shape
  write = lambda old, new, at: jax.lax.dynamic_update_slice(old, new, (0, at))

  def body(i, carry):
    logprobs, entropies, normalizers = carry
    _, h, t, counts = _chunk(order, hidden, targets, i * size, size)
    logits = _logits(config, h, table, temperature)
    # One pass for the maximum, one for the three sums.
    top = logits.max(-1, keepdims=True)
    e = jnp.exp(logits - top)
    total, weighted = e.sum(-1), (e * logits).sum(-1)
    chosen = jnp.where(_is_target(logits, t), logits, 0.0).sum(-1)
    normalizer = top[..., 0] + jnp.log(total)
    keep = lambda x: jnp.where(counts, x, 0.0)
    return (
      write(logprobs, keep(chosen - normalizer), i * size),
      write(entropies, keep(normalizer - weighted / total), i * size),
      write(normalizers, normalizer, i * size),
    )

  empty = jnp.zeros(shape, jnp.float32)
  logprobs, entropies, normalizers = jax.lax.fori_loop(
    0, order.num_chunks, body, (empty, empty, empty)
  )
  back = jax.vmap(
    lambda values, index: (
      jnp.zeros(mask.shape[1])
      .at[index]
      .set(values, mode="drop", unique_indices=False)
    )
  )
  stats = back(logprobs, order.index), back(entropies, order.index)
  return stats, (table, hidden, targets, order, normalizers)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _chunked_stats(static, table, hidden, targets, mask):
  """Log-probabilities and entropies [S, N] float32, 0 outside of the mask.

  Args:
    static: config, temperature and positions of a chunk.
    table: [V, D].
    hidden: [S, N, D].
    targets: [S, N].
    mask: [S, N].
  """
  return _forward(static, table, hidden, targets, mask)[0]


def _backward(static, residuals, cotangents):
  """Recomputes the logits of each chunk; d logprob_t / d logits = 1_t - p.

  Products take the operands' dtype (16 bits on a GPU) and sum in float32; the
  table's gradient is summed over chunks in float32.
  """
  config, temperature, size = static
  table, hidden, targets, order, normalizers = residuals
  upstream, _ = cotangents  # entropy is a metric

  def body(i, carry):
    d_table, d_hidden = carry
    index, h, t, counts = _chunk(order, hidden, targets, i * size, size)
    logits = _logits(config, h, table, temperature)
    z = jax.lax.dynamic_slice_in_dim(normalizers, i * size, size, 1)
    g = jnp.where(counts, _take(upstream, index), 0.0)[..., None] / temperature
    p = jnp.exp(logits - z[..., None])
    d_logits = jnp.where(_is_target(logits, t), g - g * p, -g * p)
    d_logits = d_logits.astype(h.dtype)
    d_h = jnp.einsum("scv,vd->scd", d_logits, table)
    d_table += jnp.einsum(
      "scv,scd->vd", d_logits, h, preferred_element_type=jnp.float32
    )
    d_h = jax.lax.dynamic_update_slice(d_hidden, d_h, (0, i * size, 0))
    return d_table, d_h

  d_table, compact = jax.lax.fori_loop(
    0,
    order.num_chunks,
    body,
    (
      jnp.zeros(table.shape, jnp.float32),
      jnp.zeros((*order.index.shape, hidden.shape[2]), hidden.dtype),
    ),
  )
  back = jax.vmap(
    lambda values, index: (
      jnp.zeros(hidden.shape[1:], hidden.dtype)
      .at[index]
      .set(values, mode="drop")
    )
  )
  return d_table.astype(table.dtype), back(compact, order.index), None, None


_chunked_stats.defvjp(_forward, _backward)
