"""What lies between the matrix products of decoding, as kernels of Pallas.

A step of decoding has some hundred rows and two dozen layers: what XLA makes of
norms, rotations and scatters is bound by its launches and by shapes that do not
fill a GPU. Here each stretch between two products is one kernel, most with one
program for each row. The mathematics, and where it is rounded, are `Block`'s.

Products may come in parts: S sums over a share of the features each. A matrix
with few rows has too few tiles for a GPU otherwise.

Shapes: B rows, S parts, D width, N heads, K key-value heads, H head size,
F MLP width; caches hold R rows of L tokens. Triton takes powers of two: what is
not gets a mask.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from leap_jax.models import transformer
from leap_jax.models.config import ModelConfig

_MLP_BLOCK = 1024  # features of one program


@functools.cache
def _compiled(kernel, config, grid, outputs, aliases):
  """Under its own `jit`: a program lowers it once for all layers."""
  call = pl.pallas_call(
    functools.partial(kernel, config),
    grid=grid,
    out_shape=outputs,
    input_output_aliases=dict(aliases),
    compiler_params=triton.CompilerParams(num_warps=4),
    interpret=jax.default_backend() != "gpu",
  )
  return jax.jit(call)


def _call(kernel, config, grid, outputs, aliases, *inputs):
  """Runs a kernel whose references are whole arrays."""
  aliases = tuple(aliases.items())
  return _compiled(kernel, config, grid, outputs, aliases)(*inputs)


def _like(array, *shape):
  return jax.ShapeDtypeStruct(shape or array.shape, array.dtype)


def _indices(count):
  return jnp.arange(pl.next_power_of_2(count))


def _wide(x):
  return x.astype(jnp.float32)


def _load(ref, index, mask):
  return triton.load(ref.at[index], mask=mask, other=0)


def _projected(products, bias, row, columns, mask, dtype):
  """A projection's output, rounded as a product and as a sum with its bias."""
  parts = [
    _wide(_load(products, (part, row, columns), mask))
    for part in range(products.shape[0])
  ]
  y = sum(parts[1:], parts[0]).astype(dtype)
  if bias is None:
    return y
  return (_wide(y) + _wide(_load(bias, (columns,), mask))).astype(dtype)


def _weight(config, scale):
  """What a norm multiplies by."""
  return _wide(scale + config.norm_offset if config.norm_offset else scale)


def _inverse(config, squares, size):
  """One by the root mean square."""
  return jax.lax.rsqrt(squares / size + config.norm_eps)


def _add_norm_kernel(config, x, products, weights, total, normed):
  row, width = pl.program_id(0), x.shape[1]
  columns = _indices(width)
  mask = columns < width

  def norm(y, name):
    y = _wide(y)
    weight = _weight(config, _load(weights[name], (columns,), mask))
    inverse = _inverse(config, jnp.sum(y * y), width)
    return (y * (inverse * weight)).astype(x.dtype)

  bias = weights.get("bias")
  y = _projected(products, bias, row, columns, mask, x.dtype)
  if "post" in weights:
    y = norm(y, "post")
  before = _load(x, (row, columns), mask)
  y = (_wide(before) + _wide(y)).astype(x.dtype)
  # Loads come before all stores: behind one they would wait for it.
  z = norm(y, "norm")
  triton.store(total.at[row, columns], y, mask=mask)
  triton.store(normed.at[row, columns], z, mask=mask)


def add_norm(config: ModelConfig, x: jax.Array, products: jax.Array, weights):
  """Adds a projection to the residual stream, and norms what the next reads.

  Args:
    config: of the model.
    x: [B, D] the stream.
    products: [S, B, D] parts of the projection.
    weights: [D] each: `norm` behind the sum; `bias` of the projection and
      `post`, the norm before the sum, where the model has them.

  Returns:
    ([B, D] stream, [B, D] normed), dtype of `x`.
  """
  outputs, inputs = (_like(x), _like(x)), (x, products, weights)
  return _call(_add_norm_kernel, config, (x.shape[0],), outputs, {}, *inputs)


def _heads_kernel(
  config,
  products,
  weights,
  turns,
  places,
  _keys,
  _values,
  query,
  keys,
  values,
):
  slot = pl.program_id(0)
  heads, kv_heads, size = (
    config.num_heads,
    config.num_kv_heads,
    config.head_size,
  )
  half = size // 2
  pairs = _indices(half)[None]
  sin, cos = (_load(turn, (slot, pairs), pairs < half) for turn in turns)

  def halves(first_head, count):
    """Both halves of some heads; where they are among these; which are real."""
    head = _indices(count)[:, None]
    mask = (head < count) & (pairs < half)
    index = head * size + pairs
    bias, dtype = weights.get("bias"), query.dtype
    of = lambda start: _projected(
      products, bias, slot, first_head * size + start + index, mask, dtype
    )
    return (of(0), of(half)), index, mask

  def rotated(first, second, name):
    first, second = _wide(first), _wide(second)
    if config.has_qk_norm:
      squares = jnp.sum(first * first + second * second, 1, keepdims=True)
      inverse = _inverse(config, squares, size)
      weight = lambda start: _weight(
        config, _load(weights[name], (start + pairs,), pairs < half)
      )
      rounded = lambda x: _wide(x.astype(query.dtype))
      first = rounded(first * (inverse * weight(0)))
      second = rounded(second * (inverse * weight(half)))
    return (
      (first * cos - second * sin).astype(query.dtype),
      (second * cos + first * sin).astype(query.dtype),
    )

  # Loads come before all stores: behind one they would wait for it.
  new_query, *at_query = halves(0, heads)
  new_keys, *at_keys = halves(heads, kv_heads)
  new_values, *at_values = halves(heads + kv_heads, kv_heads)
  row, place = (ref[slot] for ref in places)
  new_query = rotated(*new_query, "query_norm")
  new_keys = rotated(*new_keys, "key_norm")
  if config.attention_scale is not None:
    factor = float(np.asarray(config.attention_scale * size**0.5, query.dtype))
    scaled = lambda x: (_wide(x) * factor).astype(x.dtype)
    new_query = [scaled(x) for x in new_query]
  # As a scatter that drops what has no place; a negative one counts from the
  # end.
  place = jnp.where(place < 0, place + keys.shape[1], place)
  fits = (row >= 0) & (row < keys.shape[0])
  fits &= (place >= 0) & (place < keys.shape[1])
  where = (jnp.where(fits, row, 0), jnp.where(fits, place, 0))

  def store(ref, where, parts, index, mask):
    for start, part in zip((0, half), parts, strict=True):
      at = ref.at[(*where, start + index)]
      triton.store(at, part.astype(ref.dtype), mask=mask)

  store(query, (slot,), new_query, *at_query)
  for ref, parts, (index, mask) in (
    (keys, new_keys, at_keys),
    (values, new_values, at_values),
  ):
    store(ref, where, parts, index, mask & fits)


def heads(
  config: ModelConfig,
  products: jax.Array,
  weights,
  turns: tuple[jax.Array, jax.Array],
  places: tuple[jax.Array, jax.Array],
  cache: tuple[jax.Array, jax.Array],
  dtype,
):
  """Heads of one new token of each row, rotated; keys and values into a cache.

  Args:
    config: of the model.
    products: [S, B, (N + 2 K) H] parts of queries, keys and values side by
      side.
    weights: `bias` [(N + 2 K) H], `query_norm` and `key_norm` [H], where the
      model has them.
    turns: sine and cosine [B, H / 2] float32.
    places: [B] rows and [B] places in them, int32; what lies outside of the
      caches is dropped.
    cache: keys and values [R, L, K, H], changed in place.
    dtype: of the queries.

  Returns:
    ([B, N, H] queries, (keys, values)).
  """
  b = products.shape[1]
  shape = cache[0].shape
  # Several dimensions stay: behind so large an array, 32 bits may not count.
  keys, values = (x.reshape(*shape[:2], -1) for x in cache)
  inputs = (products, weights, turns, places, keys, values)
  count = len(jax.tree.leaves(inputs))
  query, keys, values = _call(
    _heads_kernel,
    config,
    (b,),
    (
      jax.ShapeDtypeStruct((b, config.num_heads * config.head_size), dtype),
      _like(keys),
      _like(values),
    ),
    {count - 2: 1, count - 1: 2},
    *inputs,
  )
  query = query.reshape(b, config.num_heads, config.head_size)
  return query, (keys.reshape(shape), values.reshape(shape))


def _gated_kernel(config, gate_up, out):
  row, width = pl.program_id(0), out.shape[1]
  columns = pl.program_id(1) * _MLP_BLOCK + jnp.arange(_MLP_BLOCK)
  mask = columns < width
  gate = _wide(_load(gate_up, (row, columns), mask))
  up = _wide(_load(gate_up, (row, width + columns), mask))
  y = transformer.ACTIVATIONS[config.activation](gate) * up
  triton.store(out.at[row, columns], y.astype(out.dtype), mask=mask)


def gated(config: ModelConfig, gate_up: jax.Array) -> jax.Array:
  """The MLP's middle: [B, 2 F] gates and values -> [B, F] their products."""
  b, width = gate_up.shape[0], gate_up.shape[1] // 2
  return _call(
    _gated_kernel,
    config,
    (b, pl.cdiv(width, _MLP_BLOCK)),
    _like(gate_up, b, width),
    {},
    gate_up,
  )
