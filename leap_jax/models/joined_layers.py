"""`decoding.layers` with the kernels of `decode_kernels` between its products.

For GPUs, on weights side by side (`decoding.side_by_side`). `fault` finds out
whether they do what they should.
"""

import dataclasses
import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np

from leap_jax.models import attention, decoding, layer_rules, rope, transformer
from leap_jax.models.config import ModelConfig

# A product is split until its tiles are about as many as the multiprocessors of
# an H100 or H200; none of its parts is shorter than a tile is deep.
_PROCESSORS, _TILE, _DEPTH, _MOST_PARTS = 132, 128, 32, 8


def _num_parts(rows: int, features: int, outputs: int) -> int:
  tiles = -(-rows // _TILE) * -(-outputs // _TILE)
  parts = 1
  while (
    parts < _MOST_PARTS
    and 2 * parts * tiles <= _PROCESSORS
    and features % (2 * parts * _DEPTH) == 0
  ):
    parts *= 2
  return parts


def _products(x, kernel):
  """[B, D] by [D, W] -> [S, B, W] parts, float32 if there are several."""
  (b, d), w = x.shape, kernel.shape[1]
  parts = _num_parts(b, d, w)
  if parts == 1:
    return (x @ kernel)[None]
  return jnp.einsum(
    "bsd,sdw->sbw",
    x.reshape(b, parts, d // parts),
    kernel.reshape(parts, d // parts, w),
    preferred_element_type=jnp.float32,
  )


def _given(**weights):
  return {name: x for name, x in weights.items() if x is not None}


def _scale(layer, name):
  return layer[name]["scale"] if name in layer else None


def layers(
  config: ModelConfig,
  weights,
  caches: tuple[decoding.Cache, ...],
  x: jax.Array,
  lengths: jax.Array,
  places: tuple[jax.Array, jax.Array],
  attend,
) -> tuple[jax.Array, tuple[decoding.Cache, ...]]:
  """See `decoding.layers`; weights are side by side."""
  # Pallas is experimental: what does not use it needs no jax that has it.
  from leap_jax.models import decode_kernels

  all_layers = weights["layers"]
  norms = [layer["attention_norm"] for layer in all_layers]
  norms.append(weights["final_norm"])
  # What comes before the first layer is no projection of it.
  normed = transformer.Block(config).apply(
    {"params": all_layers[0]}, x, method="before_attention"
  )
  filled = []
  for i, (layer, cache) in enumerate(zip(all_layers, caches, strict=True)):
    side_by_side = layer["query_key_value"]
    turns = rope.sine_cosine(
      lengths[:, None],
      layer_rules.rule_of(config, i).frequencies,
      config.rope_scaling,
    )
    query, cache = decode_kernels.heads(
      config,
      _products(normed, side_by_side["kernel"]),
      _given(
        bias=side_by_side.get("bias"),
        query_norm=_scale(layer, "query_norm"),
        key_norm=_scale(layer, "key_norm"),
      ),
      tuple(turn[:, 0] for turn in turns),
      places,
      cache,
      x.dtype,
    )
    filled.append(decoding.Cache(*cache))
    window = config.local_window if i in config.local_layers else None
    attended = attend(i, query[:, None], filled[-1], window)[:, 0]
    x, normed = decode_kernels.add_norm(
      config,
      x,
      _products(attended, layer["out"]["kernel"]),
      _given(
        norm=_scale(layer, "mlp_norm"),
        bias=layer["out"].get("bias"),
        post=_scale(layer, "post_attention_norm"),
      ),
    )
    gate_up = normed @ layer["gate_up"]["kernel"]
    x, normed = decode_kernels.add_norm(
      config,
      x,
      _products(decode_kernels.gated(config, gate_up), layer["down"]["kernel"]),
      _given(norm=norms[i + 1]["scale"], post=_scale(layer, "post_mlp_norm")),
    )
  return normed, tuple(filled)


# The MLP's kernel takes features in blocks; more than these are more of them.
_MOST_MLP_FEATURES = 1184


def _one_layer(config):
  """The model's own widths and parts, as little else as there can be."""
  return dataclasses.replace(
    config,
    vocab_size=8,
    padding_ids=0,
    num_layers=1,
    local_layers=tuple(i for i in config.local_layers if i == 0),
    mlp_width=min(config.mlp_width, _MOST_MLP_FEATURES),
  )


@functools.cache
def fault(dtype, config: ModelConfig) -> str | None:
  """What is wrong with the joined layers, found by trying; None if nothing.

  Pallas is experimental, and its compiler for GPUs differs between versions.

  Args:
    dtype: of weights and caches.
    config: of the model; one layer of its widths is tried.
  """
  config = _one_layer(config)
  rows, room = 8, 64
  rng = np.random.default_rng(0)
  normal = lambda *shape: rng.standard_normal(shape, np.float32).astype(dtype)
  shapes = jax.eval_shape(
    functools.partial(transformer.init, config), jax.random.key(0)
  )
  fan_in = lambda x: x.shape[-2] if x.ndim > 2 else 1
  params = jax.tree.map(
    lambda x: normal(*x.shape) * dtype.type(fan_in(x) ** -0.5), shapes
  )
  shape = (rows, room, config.num_kv_heads, config.head_size)
  caches = (decoding.Cache(normal(*shape), normal(*shape)),)
  x = normal(rows, config.width)
  lengths = np.asarray([63, 33, 1, 0, 17, 50, 64, 2])
  # One has no row, and one no place in its row.
  places = (np.asarray([1, 0, 2, 8, 4, 5, 6, 7]), lengths)

  def run(layers):
    attend = lambda _, query, cache, window: attention.one_token(
      query,
      *cache,
      np.minimum(lengths + 1, room),
      implementation=attention.XLA,
      window=window,
    )

    @jax.jit
    def step(params, *inputs):
      weights = decoding.weights_of(config, params, dtype)
      weights = decoding.side_by_side(weights)
      return layers(config, weights, *inputs, attend)

    out = step(params, caches, x, lengths, places)
    return [np.asarray(y, np.float32) for y in jax.tree.leaves(out)]

  try:
    pairs = zip(run(layers), run(decoding.layers), strict=True)
    gap = max(float(np.abs(a - b).max()) for a, b in pairs)
  except Exception as error:  # Pallas', Triton's and XLA's, of many kinds
    return str(error).splitlines()[0][:200]
  return None if gap < 0.1 else f"a layer is off by {gap:.2g}"


def are_usable(dtype, config: ModelConfig, implementation: str) -> bool:
  """Whether decoding runs through them, chosen once at start.

  Warns where they should be but are not.
  """
  if implementation != attention.CUDNN:
    return False
  found = fault(jnp.dtype(dtype), config)
  if found is not None:
    warnings.warn(
      f"decoding goes without joined kernels: {found}", stacklevel=2
    )
  return found is None
