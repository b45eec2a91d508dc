"""The decoder with a cache: reading prompts, reading more, one more token.

The weights are the trainer's in another layout (`weights_of`): a list of layers
instead of a stack, since a slice of a stack would be copied in every step, and
projections that read the same input side by side in one matrix, since small
matrix products are bound by their launches. The mathematics is `Block`'s.

The caches hold R rows of S tokens, and stay where they are: what is run on some
of the rows is told which ones. On cuDNN, whose attention follows the lengths,
rows that do not take part cost little; elsewhere the rows that do are copied
together first (`cache_rows`). Prompts lie either in front of each row,
or once for each group (`Prompts`); then the caches hold what comes behind.

Shapes: R rows of the caches, B rows that take part, T new tokens, S cache
length, D width, N heads, K key-value heads, H head size, V vocabulary.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from leap_jax.models import attention, cache_rows, layer_rules, transformer
from leap_jax.models.config import ModelConfig
from leap_jax.models.transformer import Block


class Cache(NamedTuple):
  """Keys and values of one layer: [R, S, K, H] each."""

  keys: jax.Array
  values: jax.Array


def weights_of(config: ModelConfig, params, dtype):
  """Parameters as decoding reads them.

  Args:
    config: of the model.
    params: as made by `transformer.init`.
    dtype: of every weight.

  Returns:
    A tree of arrays; layers are a tuple.
  """
  params = jax.tree.map(lambda x: x.astype(dtype), params)
  layer = lambda i: jax.tree.map(lambda x: x[i], params["blocks"])
  rest = {name: tree for name, tree in params.items() if name != "blocks"}
  return rest | {"layers": tuple(layer(i) for i in range(config.num_layers))}


class Prompts(NamedTuple):
  """Prompts that their groups share: P of up to T tokens."""

  caches: tuple[Cache, ...]  # per layer [P, T, K, H]
  lengths: jax.Array  # [P] int32

  def of_rows(self, num_rows: int) -> jax.Array:
    """[R] tokens of each row that lie here."""
    return jnp.repeat(self.lengths, num_rows // self.lengths.size)


# Projections that read the same input.
_BESIDE = {
  "query_key_value": ("query", "key", "value"),
  "gate_up": ("gate", "up"),
}


def side_by_side(weights):
  """Projections that read the same input become one matrix product.

  On a GPU small products are bound by their launches. The sums are the same
  but for their order.
  """

  def joined(layer):
    for name, parts in _BESIDE.items():
      layer[name] = jax.tree.map(
        lambda *arrays: jnp.concatenate(arrays, -1),
        *(layer.pop(part) for part in parts),
      )
    return layer

  layers = tuple(joined(dict(layer)) for layer in weights["layers"])
  return weights | {"layers": layers}


def empty_caches(
  config: ModelConfig, rows: int, length: int, dtype
) -> tuple[Cache, ...]:
  """Zeroed caches, one for each layer."""
  shape = (rows, length, config.num_kv_heads, config.head_size)
  return tuple(
    Cache(jnp.zeros(shape, dtype), jnp.zeros(shape, dtype))
    for _ in range(config.num_layers)
  )


def _product(weights, x):
  product = x @ weights["kernel"]
  return product + weights["bias"][None, None] if "bias" in weights else product


def _products(layer, name, x, sizes):
  """Several projections of one input, however their weights lie."""
  if name in layer:
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]
    return jnp.split(_product(layer[name], x), ends, -1)
  return [_product(layer[part], x) for part in _BESIDE[name]]


def _layer(config, weights, index, x, positions, attend):
  """One block around `attend(query, key, value, window) -> [B, T, N * H]`."""
  block, layer = Block(config), weights["layers"][index]
  run = lambda method, *inputs: block.apply(
    {"params": layer}, *inputs, method=method
  )
  heads = (config.num_heads, config.num_kv_heads, config.num_kv_heads)
  parts = _products(
    layer,
    "query_key_value",
    run("before_attention", x),
    [n * config.head_size for n in heads],
  )
  frequencies = layer_rules.rule_of(config, index).frequencies
  window = config.local_window if index in config.local_layers else None
  attended = attend(*run("heads", *parts, positions, frequencies), window)
  x = run("add_attention", x, attended)
  gate, up = _products(
    layer, "gate_up", run("before_mlp", x), [config.mlp_width] * 2
  )
  return run("add_mlp", x, gate, up)


def read_prompts(
  config: ModelConfig,
  weights,
  caches: tuple[Cache, ...],
  tokens: jax.Array,
  lengths: jax.Array,
  rows: jax.Array,
  implementation: str,
) -> tuple[jax.Array, tuple[Cache, ...]]:
  """Reads prompts once each and leaves them in some rows of caches.

  Args:
    config: of the model.
    weights: of `weights_of`.
    caches: [R, S, K, H] in every layer.
    tokens: [B, T] prompts, right-padded; T <= S.
    lengths: [B].
    rows: [B, G] rows that get each prompt; those beyond R are left out.
    implementation: of attention.

  Returns:
    ([B, D] hidden states of the last tokens, caches).
  """
  t = tokens.shape[1]
  positions = jnp.broadcast_to(jnp.arange(t)[None], tokens.shape)
  x = transformer.embed(config, weights["embedding"]["embedding"][tokens])
  filled = []
  for i, cache in enumerate(caches):

    def attend(query, key, value, window, cache=cache):
      put = lambda old, new: old.at[rows, :t].set(
        new.astype(old.dtype)[:, None], mode="drop"
      )
      filled.append(Cache(put(cache.keys, key), put(cache.values, value)))
      return attention.whole_rows(
        query,
        key,
        value,
        lengths,
        implementation=implementation,
        window=window,
      )

    x = _layer(config, weights, i, x, positions, attend)
  return _last(config, weights, x, lengths), tuple(filled)


def read_more(
  config: ModelConfig,
  weights,
  caches: tuple[Cache, ...],
  prompts: Prompts | None,
  tokens: jax.Array,
  lengths: jax.Array,
  start: jax.Array,
  rows: jax.Array,
  width: int,
  implementation: str,
) -> tuple[jax.Array, tuple[Cache, ...]]:
  """Reads T more tokens of rows whose first tokens are cached.

  Args:
    config: of the model.
    weights: of `weights_of`.
    caches: [R, S, K, H] in every layer.
    prompts: of all rows, if they are shared.
    tokens: [B, T] new tokens, right-padded; padding writes garbage behind the
      row's end, where the next call overwrites it before anybody looks.
    lengths: [B] new tokens of each row.
    start: [B] tokens that are cached, a shared prompt's included.
    rows: [B] their places in the caches; those beyond R are left out.
    width: the most tokens that any row has in `caches` then.
    implementation: of attention.

  Returns:
    ([B, D] hidden states of the last tokens, caches).
  """
  positions = start[:, None] + jnp.arange(tokens.shape[1])[None]
  shared = jnp.zeros_like(start)
  if prompts is not None:
    num_rows = caches[0].keys.shape[0]
    group = num_rows // prompts.lengths.shape[0]
    shared = prompts.of_rows(num_rows).at[rows].get(mode="clip")
  own = positions - shared[:, None]
  x = transformer.embed(config, weights["embedding"]["embedding"][tokens])
  filled = []
  for i, cache in enumerate(caches):

    def attend(query, key, value, window, cache=cache, i=i):
      put = lambda old, new: old.at[rows[:, None], own].set(
        new.astype(old.dtype), mode="drop"
      )
      cache = Cache(put(cache.keys, key), put(cache.values, value))
      filled.append(cache)
      behind = cache_rows.gather(cache, rows, width)
      if prompts is None:
        return attention.appended(
          query,
          *behind,
          positions,
          implementation=implementation,
          window=window,
        )
      before = prompts.caches[i]
      before = cache_rows.gather(before, rows // group, before.keys.shape[1])
      sees = lambda last, count: jnp.arange(count)[None, None] <= last
      mask = jnp.concatenate(
        [
          jnp.broadcast_to(
            sees(shared[:, None, None] - 1, before.keys.shape[1]),
            (*tokens.shape, before.keys.shape[1]),
          ),
          sees(own[..., None], width),
        ],
        -1,
      )
      keys, values = jax.tree.map(
        lambda *parts: jnp.concatenate(parts, 1), before, behind
      )
      return attention.masked(query, keys, values, mask, implementation)

    x = _layer(config, weights, i, x, positions, attend)
  return _last(config, weights, x, lengths), tuple(filled)


def _last(config, weights, x, lengths):
  """Normed hidden state of each row's last new token: [B, T, D] -> [B, D]."""
  index = jnp.maximum(lengths - 1, 0)
  x = transformer.final_norm(config, weights, x)
  return jnp.take_along_axis(x, index[:, None, None], axis=1)[:, 0]


def layers(
  config: ModelConfig,
  weights,
  caches: tuple[Cache, ...],
  x: jax.Array,
  lengths: jax.Array,
  places: tuple[jax.Array, jax.Array],
  attend,
) -> tuple[jax.Array, tuple[Cache, ...]]:
  """One token of each slot, [B, D] at positions `lengths`, through all layers.

  Keys and values go to `places`, [B] rows and [B] places in them, if inside.
  `attend(layer, query [B, 1, N, H], cache, window)` is [B, 1, N * H].
  """
  x, positions = x[:, None], lengths[:, None]
  filled = []
  for i, cache in enumerate(caches):

    def attend_to_cache(query, key, value, window, cache=cache, i=i):
      put = lambda old, new: old.at[places].set(
        new[:, 0].astype(old.dtype), mode="drop"
      )
      filled.append(Cache(*map(put, cache, (key, value))))
      return attend(i, query, filled[-1], window)

    x = _layer(config, weights, i, x, positions, attend_to_cache)
  return transformer.final_norm(config, weights, x)[:, 0], tuple(filled)


def add_token(
  config: ModelConfig,
  weights,
  caches: tuple[Cache, ...],
  prompts: Prompts | None,
  tokens: jax.Array,
  lengths: jax.Array,
  is_idle: jax.Array,
  places: cache_rows.Places | None,
  implementation: str,
  layers=layers,
) -> tuple[jax.Array, tuple[Cache, ...]]:
  """Reads one token of each slot.

  Args:
    config: of the model.
    weights: of `weights_of`.
    caches: [R, S, K, H] in every layer.
    prompts: of all rows, if they are shared.
    tokens: [B].
    lengths: [B] cached tokens, a shared prompt's too: the new one's position.
    is_idle: [B] slots whose result nobody needs.
    places: of the slots; None if slot i runs row i.
    implementation: of attention, `attention.PALLAS` among them.
    layers: these or others that do the same (`joined_layers`).

  Returns:
    ([B, D] normed hidden states, caches).
  """
  num_rows = caches[0].keys.shape[0]
  x = transformer.embed(config, weights["embedding"]["embedding"][tokens])
  at = jnp.arange(tokens.shape[0]) if places is None else places.rows
  own = lengths
  if prompts is not None:
    shared = prompts.of_rows(num_rows)
    own = own - (shared if places is None else shared.at[at].get(mode="clip"))
  # What nobody needs looks at one key: its attention costs little.
  seen, runs = own + 1, ~is_idle
  by_row = lambda x: x.at[places.slots].get(mode="clip")
  row_runs = runs
  if places is not None:
    row_runs = by_row(runs) & (places.slots < tokens.shape[0])
  # Our kernel finds a slot's row; cuDNN wants each row's query beside it.
  finds_rows = implementation == attention.PALLAS
  is_moved = places is not None and not finds_rows
  if is_moved:
    seen, runs = by_row(seen), row_runs
  seen = jnp.where(runs, seen, 1)
  how = dict(implementation=implementation)
  if prompts is not None:
    is_read = row_runs.reshape(prompts.lengths.size, -1).any(1)
    prompt_seen = jnp.where(is_read, prompts.lengths, 0 if finds_rows else 1)
    if finds_rows:
      how |= dict(places=places)

  def attend(i, query, cache, window):
    if is_moved:
      query = by_row(query)
    if prompts is None:
      rows = at if finds_rows else None
      attended = attention.one_token(
        query, *cache, seen, window=window, rows=rows, **how
      )
    else:
      shared = (prompts.caches[i], prompt_seen)
      attended = attention.behind_prompts(query, cache, seen, *shared, **how)
    if is_moved:
      attended = attended.at[places.rows].get(mode="clip")
    return attended

  return layers(config, weights, caches, x, lengths, (at, own), attend)


def logits_of(weights, hidden: jax.Array) -> jax.Array:
  """[B, D] hidden states -> [B, V] float32 logits.

  Those of ids that no token has are what they are: whoever draws leaves them
  out, and saves a pass over all logits.
  """
  return jnp.einsum(
    "bd,vd->bv",
    hidden,
    transformer.head_of(weights),
    preferred_element_type=jnp.float32,
  )
