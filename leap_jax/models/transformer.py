"""One decoder, a table of sizes.

Two ways through the same parameters. `forward` scans over the stacked layers
(training: short to trace and to compile); `extend` walks over them with a cache
for each layer (prefill, appended turns and decoding: a stacked cache carried
through a scan would be copied in every layer).

Shapes: B rows, T new tokens, S cache length, D width, N heads, K key-value
heads, H head size, V vocabulary.
"""

import dataclasses

import flax.linen as nn
import jax
import jax.numpy as jnp


@dataclasses.dataclass(frozen=True)
class ModelConfig:
  """Sizes of a decoder. Hashable, so that it can be a static argument."""

  vocab_size: int
  width: int
  num_layers: int
  num_heads: int
  num_kv_heads: int
  head_size: int
  mlp_width: int
  rope_theta: float = 10_000.0
  norm_eps: float = 1e-6
  has_qk_norm: bool = True
  remat: str = "none"  # a key of REMAT


SIZES = {  # everything but the vocabulary
  "micro": dict(
    width=64, num_layers=2, num_heads=2, num_kv_heads=1, head_size=32,
    mlp_width=128,
  ),
  "tiny": dict(
    width=192, num_layers=4, num_heads=6, num_kv_heads=2, head_size=32,
    mlp_width=512,
  ),
}  # fmt: skip


# What the backward pass of `forward` keeps: everything, or only the input of
# each block (a third more computation, a fraction of the memory).
REMAT = {
  "none": lambda block: block,
  "block": lambda block: nn.remat(block, prevent_cse=False),
}


def _rope(x, positions, theta):
  """Rotates pairs of [B, T, heads, H] by angles that grow with position."""
  half = x.shape[-1] // 2
  frequencies = theta ** (-jnp.arange(half, dtype=jnp.float32) / half)
  angles = jnp.einsum("bt,h->bth", positions.astype(jnp.float32), frequencies)
  sin, cos = jnp.sin(angles)[:, :, None], jnp.cos(angles)[:, :, None]
  first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
  rotated = [first * cos - second * sin, second * cos + first * sin]
  return jnp.concatenate(rotated, -1).astype(x.dtype)


def _attend(query, keys, values, mask):
  """Grouped-query attention.

  Args:
    query: [B, T, N, H].
    keys: [B, S, K, H].
    values: [B, S, K, H].
    mask: [B, T, S] True where a query may look.

  Returns:
    [B, T, N * H].
  """
  b, t, n, h = query.shape
  k = keys.shape[2]
  grouped = query.reshape(b, t, k, n // k, h)
  scores = jnp.einsum(
    "btkgh,bskh->bkgts", grouped, keys, preferred_element_type=jnp.float32
  )
  scores = jnp.where(mask[:, None, None], scores * h**-0.5, -1e30)
  weights = jax.nn.softmax(scores, -1).astype(values.dtype)
  return jnp.einsum("bkgts,bskh->btkgh", weights, values).reshape(b, t, n * h)


class Block(nn.Module):
  """Attention and gated MLP, each behind an RMS norm, with residuals."""

  config: ModelConfig

  def setup(self):
    """Declares the layers; their names are the parameters' names."""
    c = self.config
    dense = lambda features: nn.Dense(
      features,
      use_bias=False,
      kernel_init=nn.initializers.variance_scaling(
        1.0, "fan_in", "truncated_normal"
      ),
    )
    norm = lambda: nn.RMSNorm(epsilon=c.norm_eps)
    self.attention_norm = norm()
    self.query = dense(c.num_heads * c.head_size)
    self.key = dense(c.num_kv_heads * c.head_size)
    self.value = dense(c.num_kv_heads * c.head_size)
    self.out = dense(c.width)
    if c.has_qk_norm:
      self.query_norm = norm()
      self.key_norm = norm()
    self.mlp_norm = norm()
    self.gate = dense(c.mlp_width)
    self.up = dense(c.mlp_width)
    self.down = dense(c.width)

  def before_attention(self, x):
    """What the projections of queries, keys and values read."""
    return self.attention_norm(x)

  def heads(self, query, key, value, positions):
    """Projections [B, T, heads * H] -> heads [B, T, heads, H], rotated."""
    c = self.config
    split = lambda y, heads: y.reshape(*y.shape[:2], heads, c.head_size)
    query, key = split(query, c.num_heads), split(key, c.num_kv_heads)
    value = split(value, c.num_kv_heads)
    if c.has_qk_norm:
      query, key = self.query_norm(query), self.key_norm(key)
    query = _rope(query, positions, c.rope_theta)
    key = _rope(key, positions, c.rope_theta)
    return query, key, value

  def add_attention(self, x, attended):
    """Adds [B, T, N * H] of attention to the residual stream."""
    return x + self.out(attended)

  def before_mlp(self, x):
    """What the projections of the MLP read."""
    return self.mlp_norm(x)

  def add_mlp(self, x, gate, up):
    """Adds the MLP, of which two projections are given, to the stream."""
    return x + self.down(nn.silu(gate) * up)

  def project(self, x, positions):
    """Queries [B, T, N, H], keys and values [B, T, K, H] of new tokens."""
    h = self.before_attention(x)
    return self.heads(self.query(h), self.key(h), self.value(h), positions)

  def finish(self, x, attended):
    """Adds attention and MLP to the residual stream."""
    x = self.add_attention(x, attended)
    h = self.before_mlp(x)
    return self.add_mlp(x, self.gate(h), self.up(h))

  def __call__(self, x, positions, mask):
    """All tokens at once: [B, T, D] -> ([B, T, D], None), for nn.scan."""
    query, key, value = self.project(x, positions)
    return self.finish(x, _attend(query, key, value, mask)), None


class Decoder(nn.Module):
  """Embedding, stacked blocks, final norm; the head is the embedding."""

  config: ModelConfig

  @nn.compact
  def __call__(self, tokens):
    """[B, T] tokens from position 0 -> [B, T, D] normed hidden states."""
    c = self.config
    embedding = nn.Embed(
      c.vocab_size,
      c.width,
      embedding_init=nn.initializers.normal(c.width**-0.5),
      name="embedding",
    )
    x = embedding(tokens)
    length = tokens.shape[1]
    positions = jnp.broadcast_to(jnp.arange(length)[None], tokens.shape)
    # Rows are padded on the right, where causality hides the padding.
    causal = jnp.tril(jnp.ones((length, length), bool))
    mask = jnp.broadcast_to(causal[None], (tokens.shape[0], length, length))
    blocks = nn.scan(
      REMAT[c.remat](Block),
      variable_axes={"params": 0},
      split_rngs={"params": True},
      in_axes=nn.broadcast,
      length=c.num_layers,
    )(c, name="blocks")
    x, _ = blocks(x, positions, mask)
    return nn.RMSNorm(epsilon=c.norm_eps, name="final_norm")(x)


def init(config: ModelConfig, key: jax.Array):
  """Random parameters (float32). The key is consumed."""
  return Decoder(config).init(key, jnp.zeros((1, 8), jnp.int32))["params"]


def forward(config: ModelConfig, params, tokens: jax.Array) -> jax.Array:
  """Hidden states of whole rows.

  Args:
    config: sizes.
    params: as made by `init`.
    tokens: [B, T], right-padded; what stands after a row's end has no effect
      on what stands before it.

  Returns:
    [B, T, D].
  """
  return Decoder(config).apply({"params": params}, tokens)


def embed(config: ModelConfig, rows: jax.Array) -> jax.Array:
  """Rows of the embedding -> what the first block reads."""
  del config
  return rows


def final_norm(config: ModelConfig, params, x: jax.Array) -> jax.Array:
  """[..., D] behind the last block -> [..., D] normed hidden states."""
  return nn.RMSNorm(epsilon=config.norm_eps).apply(
    {"params": params["final_norm"]}, x
  )


def logits_of(config: ModelConfig, params, hidden: jax.Array) -> jax.Array:
  """[..., D] hidden states -> [..., V] logits, through the tied head."""
  del config
  return hidden @ params["embedding"]["embedding"].T


def num_params(params) -> int:
  """Number of scalars in a tree."""
  return sum(leaf.size for leaf in jax.tree.leaves(params))
