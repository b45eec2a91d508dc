"""One token of each row, drawn from its logits. Pure functions.

Two distributions, not to be mixed up:

- p, the softmax of logits / temperature over all ids that can be sampled. The
  stored log-probability is log p[token]: what `losses.token_logprobs` computes
  in training, whatever was cut off in sampling.
- q, what is sampled: p without the ids that top-k, top-p and min-p cut off, and
  normalised again. With K the kept ids, q = p / p(K) on K, so that
  log q = log p - log p(K). `log_kept` is log p(K), 0 where nothing is cut: an
  importance weight against q needs it, and its mean says how far off p is.

The cuts come in the order temperature, top-k, top-p of what top-k kept, min-p.
Each keeps every id above a threshold, so that ties at the threshold stay
together.

A draw is Gumbel's: argmax(log q + gumbel noise) has the distribution q. A large
vocabulary takes it twice, first among blocks of ids by their mass, then within
the block: the same distribution with some hundred random numbers for a row
instead of one for each id.
"""

import dataclasses
from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp

BLOCK = 128
"""Ids of a block: a row of them is a few cache lines on a GPU."""
_ONE_BLOCK = 1024  # up to so many ids a plain draw is as cheap
CUT = -1e30
"""Logit of what is left out. Finite: differences of two are 0, not NaN."""


@dataclasses.dataclass(frozen=True)
class Rule:
  """What is sampled. The defaults cut off nothing."""

  temperature: float = 1.0
  top_k: int = 0  # keep the k most probable ids; 0 = all
  top_p: float = 1.0  # keep the smallest set with at least this mass
  min_p: float = 0.0  # keep ids with at least this fraction of the top one's p

  @property
  def cuts(self) -> bool:
    """Whether anything is cut off."""
    return self.top_k > 0 or self.top_p < 1.0 or self.min_p > 0.0


def _ordered(x):
  """float32 -> int32 that sort alike; its own inverse, but for the type."""
  bits = jax.lax.bitcast_convert_type(x, jnp.int32)
  return bits ^ ((bits >> 31) & 0x7FFFFFFF)


def _float_of(key):
  bits = key ^ ((key >> 31) & 0x7FFFFFFF)
  return jax.lax.bitcast_convert_type(bits, jnp.float32)


def _largest_threshold(keeps_enough, low, high):
  """The largest float32 t in [low, high] for which `keeps_enough(t)`.

  By bisection over the bits of t: exact, and nothing is sorted.

  Args:
    keeps_enough: [B] float32 -> [B] bool; true for `low`, and once false it
      stays so as t grows.
    low: [B] float32.
    high: [B] float32.
  """

  def halve(_, bounds):
    below, above = bounds
    # Rounded up without overflow.
    middle = (below | above) - ((below ^ above) >> 1)
    good = keeps_enough(_float_of(middle))
    return jnp.where(good, middle, below), jnp.where(good, above, middle - 1)

  bounds = (_ordered(low), _ordered(high))
  return _float_of(jax.lax.fori_loop(0, 32, halve, bounds)[0])


def threshold(logp: jax.Array, rule: Rule) -> jax.Array:
  """The least log-probability that is kept.

  Args:
    logp: [B, V] float32 log-probabilities of p.
    rule: with cuts.

  Returns:
    [B] float32; the most probable id is never below.
  """
  low, high = logp.min(-1), logp.max(-1)
  least = low
  above = lambda t: logp >= t[:, None]
  if 0 < rule.top_k < logp.shape[-1]:
    least = _largest_threshold(
      lambda t: above(t).sum(-1) >= rule.top_k, low, high
    )
  if rule.top_p < 1.0:
    p = jnp.exp(logp)
    mass = lambda t: jnp.where(above(t), p, 0.0).sum(-1)
    wanted = rule.top_p * mass(least)
    least = _largest_threshold(lambda t: mass(t) >= wanted, least, high)
  if rule.min_p > 0.0:
    least = jnp.maximum(least, high + jnp.log(rule.min_p))
  return jnp.minimum(least, high)


def _cut(scaled, total, rule):
  """[B, V] without what the rule leaves out. Compared as log-probabilities, as
  the threshold was found: `total` added back rounds it above its own id."""
  logp = scaled - total[:, None]
  return jnp.where(logp >= threshold(logp, rule)[:, None], scaled, CUT)


def _blocks(x):
  """[B, V] -> [B, V / BLOCK, BLOCK]; what is filled up is never drawn."""
  b, v = x.shape
  rest = -v % BLOCK
  if rest:
    x = jnp.pad(x, ((0, 0), (0, rest)), constant_values=CUT)
  return x.reshape(b, -1, BLOCK)


def _log_masses(blocks):
  """[B, M, BLOCK] -> [B, M] log of the summed exponentials."""
  top = blocks.max(-1)
  return top + jnp.log(jnp.exp(blocks - top[..., None]).sum(-1))


def _scaled(logits, rule, num_ids):
  """Logits of p, as far as a constant of each row."""
  scaled = logits.astype(jnp.float32) / rule.temperature
  if num_ids == scaled.shape[-1]:
    return scaled
  is_id = jax.lax.broadcasted_iota(jnp.int32, scaled.shape, 1) < num_ids
  return jnp.where(is_id, scaled, CUT)


def log_masses(logits: jax.Array, rule: Rule, num_ids: int) -> jax.Array:
  """Of blocks of ids: the logarithm of their summed exp(logit / temperature).

  Args:
    logits: [B, V].
    rule: with the temperature.
    num_ids: those behind have no mass.

  Returns:
    [B, V / BLOCK, rounded up] float32.
  """
  return _log_masses(_blocks(_scaled(logits, rule, num_ids)))


def _gumbel_argmax(keys, log_weights):
  return jax.vmap(jax.random.categorical)(keys, log_weights)


def draw(
  logits: jax.Array,
  keys: jax.Array,
  rule: Rule,
  num_ids: int,
  masses_of: Callable[[jax.Array, Rule, int], jax.Array] = log_masses,
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Samples one id for each row, from the row's own key.

  Args:
    logits: [B, V].
    keys: [B] PRNG keys, consumed.
    rule: how.
    num_ids: those behind cannot be sampled: no token has them.
    masses_of: `log_masses`, or what computes the same.

  Returns:
    (ids [B] int32, log p of them [B] float32, log_kept [B] float32).
  """
  chex.assert_equal_shape_prefix((logits, keys), 1)
  scaled = _scaled(logits, rule, num_ids)
  if scaled.shape[-1] <= _ONE_BLOCK:
    return _draw_plainly(scaled, keys, rule)
  blocks = _blocks(scaled)
  masses = masses_of(logits, rule, num_ids)
  total = jax.nn.logsumexp(masses, -1)
  log_kept = jnp.zeros_like(total)
  if rule.cuts:
    blocks = _blocks(_cut(scaled, total, rule))
    masses = _log_masses(blocks)
    log_kept = jax.nn.logsumexp(masses, -1) - total
  block = _gumbel_argmax(
    jax.vmap(jax.random.fold_in, (0, None))(keys, 0), masses
  )
  inside = jnp.take_along_axis(blocks, block[:, None, None], 1)[:, 0]
  place = _gumbel_argmax(
    jax.vmap(jax.random.fold_in, (0, None))(keys, 1), inside
  )
  chosen = jnp.take_along_axis(inside, place[:, None], 1)[:, 0]
  ids = block * BLOCK + place
  return ids.astype(jnp.int32), chosen - total, log_kept


def _draw_plainly(scaled, keys, rule):
  total = jax.nn.logsumexp(scaled, -1)
  kept, log_kept = scaled, jnp.zeros_like(total)
  if rule.cuts:
    kept = _cut(scaled, total, rule)
    log_kept = jax.nn.logsumexp(kept, -1) - total
  ids = _gumbel_argmax(keys, kept)
  chosen = jnp.take_along_axis(scaled, ids[:, None], 1)[:, 0]
  return ids.astype(jnp.int32), chosen - total, log_kept
