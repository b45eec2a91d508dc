"""One decoder for every family of `sizes`.

Its parts, and its parameters: those of the layers are stacked. Two ways lead
through them: `whole_rows` (training) and `decoding` (a cache for each layer).

Shapes: B rows, T tokens, D width, N heads, K key-value heads, H head size,
V vocabulary.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp

from leap_jax.models import attention, layer_rules, rope
from leap_jax.models.config import ModelConfig

ACTIVATIONS = {
  "silu": nn.silu,
  "gelu_tanh": lambda x: nn.gelu(x, approximate=True),
}


class RMSNorm(nn.Module):
  """x / sqrt(mean(x^2) + eps) * (offset + scale), in float32."""

  epsilon: float
  offset: float  # 0, or 1 where the scale is stored as a difference from 1

  @nn.compact
  def __call__(self, x):
    """[..., D] -> [..., D]."""
    dtype = x.dtype
    start = nn.initializers.constant(1.0 - self.offset)
    scale = self.param("scale", start, (x.shape[-1],))
    x = x.astype(jnp.float32)
    inverse = jax.lax.rsqrt(
      jnp.square(x).mean(-1, keepdims=True) + self.epsilon
    )
    weight = scale + self.offset if self.offset else scale
    weight = weight.reshape((1,) * (x.ndim - 1) + weight.shape)
    return (x * (inverse * weight)).astype(jnp.result_type(dtype, scale))


def _norm(config, name=None):
  return RMSNorm(config.norm_eps, config.norm_offset, name=name)


class Block(nn.Module):
  """Attention and gated MLP, each behind an RMS norm, with residuals."""

  config: ModelConfig

  def setup(self):
    """Declares the layers; their names are the parameters' names."""
    c = self.config
    dense = lambda features, use_bias=False: nn.Dense(
      features,
      use_bias=use_bias,
      kernel_init=nn.initializers.variance_scaling(
        1.0, "fan_in", "truncated_normal"
      ),
    )
    self.attention_norm = _norm(c)
    self.query = dense(c.num_heads * c.head_size, c.has_qkv_bias)
    self.key = dense(c.num_kv_heads * c.head_size, c.has_qkv_bias)
    self.value = dense(c.num_kv_heads * c.head_size, c.has_qkv_bias)
    self.out = dense(c.width, c.has_out_bias)
    if c.has_qk_norm:
      self.query_norm = _norm(c)
      self.key_norm = _norm(c)
    self.mlp_norm = _norm(c)
    self.gate = dense(c.mlp_width)
    self.up = dense(c.mlp_width)
    self.down = dense(c.width)
    if c.has_post_norms:
      self.post_attention_norm = _norm(c)
      self.post_mlp_norm = _norm(c)

  def before_attention(self, x):
    """What the projections of queries, keys and values read."""
    return self.attention_norm(x)

  def heads(self, query, key, value, positions, frequencies):
    """Projections [B, T, heads * H] -> heads [B, T, heads, H], rotated."""
    c = self.config
    split = lambda y, heads: y.reshape(*y.shape[:2], heads, c.head_size)
    query, key = split(query, c.num_heads), split(key, c.num_kv_heads)
    value = split(value, c.num_kv_heads)
    if c.has_qk_norm:
      query, key = self.query_norm(query), self.key_norm(key)
    query = rope.rotate(query, positions, frequencies, c.rope_scaling)
    key = rope.rotate(key, positions, frequencies, c.rope_scaling)
    if c.attention_scale is not None:
      # Attention multiplies by head_size**-0.5, whatever computes it.
      query = query * (c.attention_scale * c.head_size**0.5)
    return query, key, value

  def add_attention(self, x, attended):
    """Adds [B, T, N * H] of attention to the residual stream."""
    attended = self.out(attended)
    if self.config.has_post_norms:
      attended = self.post_attention_norm(attended)
    return x + attended

  def before_mlp(self, x):
    """What the projections of the MLP read."""
    return self.mlp_norm(x)

  def add_mlp(self, x, gate, up):
    """Adds the MLP, of which two projections are given, to the stream."""
    h = self.down(ACTIVATIONS[self.config.activation](gate) * up)
    return x + (self.post_mlp_norm(h) if self.config.has_post_norms else h)

  def __call__(self, x, positions, rule):
    """All tokens at once: [B, T, D] -> ([B, T, D], None), for nn.scan."""
    rule = rule or layer_rules.rule_of(self.config, 0)
    h = self.before_attention(x)
    attended = attention.whole_rows(
      *self.heads(
        self.query(h), self.key(h), self.value(h), positions, rule.frequencies
      ),
      implementation=attention.XLA,
      window=rule.window,
    )
    x = self.add_attention(x, attended)
    h = self.before_mlp(x)
    return self.add_mlp(x, self.gate(h), self.up(h)), None


class Decoder(nn.Module):
  """Declares the parameters: embedding, stacked blocks, final norm, and a head
  where it is not the embedding."""

  config: ModelConfig

  @nn.compact
  def __call__(self, tokens):
    """[B, T] tokens from position 0 -> [B, T, D] normed hidden states."""
    c = self.config
    table = lambda name: nn.Embed(
      c.vocab_size,
      c.width,
      embedding_init=nn.initializers.normal(c.width**-0.5),
      name=name,
    )
    x = embed(c, table("embedding")(tokens))
    if not c.tied_head and self.is_initializing():
      table("head")(tokens)  # for its parameters; `head_of` reads them
    positions = jnp.broadcast_to(
      jnp.arange(tokens.shape[1])[None], tokens.shape
    )
    blocks = nn.scan(
      Block,
      variable_axes={"params": 0},
      split_rngs={"params": True},
      in_axes=(nn.broadcast, 0),
      length=c.num_layers,
    )(c, name="blocks")
    x, _ = blocks(x, positions, layer_rules.stacked(c))
    return _norm(c, "final_norm")(x)


def embed(config: ModelConfig, rows: jax.Array) -> jax.Array:
  """Rows of the embedding -> what the first block reads."""
  if config.embedding_scale == 1.0:
    return rows
  return rows * jnp.asarray(config.embedding_scale, rows.dtype)


def init(config: ModelConfig, key: jax.Array):
  """Random parameters (float32). The key is consumed."""
  return Decoder(config).init(key, jnp.zeros((1, 8), jnp.int32))["params"]


def head_of(params) -> jax.Array:
  """[V, D]: the head's own matrix, or the embedding where they are tied."""
  return params.get("head", params["embedding"])["embedding"]


def without_padding_ids(config: ModelConfig, logits: jax.Array) -> jax.Array:
  """[..., V] logits, with those of ids that no token has far below all others.

  Sampler and trainer both use it: what cannot be sampled is in no softmax.
  Finite, so that p log p is 0 and not NaN.
  """
  if config.padding_ids == 0:
    return logits
  ids = jax.lax.broadcasted_iota(jnp.int32, logits.shape, logits.ndim - 1)
  return jnp.where(ids < config.num_ids, logits, -1e30)


def logits_of(config: ModelConfig, params, hidden: jax.Array) -> jax.Array:
  """[..., D] hidden states -> [..., V] float32 logits."""
  logits = jnp.matmul(
    hidden, head_of(params).T, preferred_element_type=jnp.float32
  )
  return without_padding_ids(config, logits)


def final_norm(config: ModelConfig, params, x: jax.Array) -> jax.Array:
  """[..., D] behind the last block -> [..., D] normed hidden states."""
  return _norm(config).apply({"params": params["final_norm"]}, x)


def num_params(params) -> int:
  """Number of scalars in a tree."""
  return sum(leaf.size for leaf in jax.tree.leaves(params))
