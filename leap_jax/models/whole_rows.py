"""The decoder over whole rows, for training: a scan over the stacked layers.

`transformer.extend` is the other way through the same blocks, with a cache.
Nothing in `Execution` changes what is computed but for rounding.

Shapes: B rows, T tokens, D width.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from leap_jax.models import attention, layer_rules, transformer


def _keep(x):
  return x


@dataclasses.dataclass(frozen=True)
class Execution:
  """How a forward pass and its gradient are computed. Hashable."""

  remat: str = "none"  # a key of REMAT
  attention: str = attention.XLA  # one of attention.IMPLEMENTATIONS
  products: str = "one_by_one"  # a key of PRODUCTS
  unroll: int = 1  # layers in one step of the scan
  # On several devices: where parameters (of a layer, and of the rest) and
  # hidden states lie while they are used, and attention that runs on each
  # device's own rows and heads.
  place_params: Callable[[Any], Any] = _keep
  place_hidden: Callable[[jax.Array], jax.Array] = _keep
  split_attention: Callable[[Callable], Callable] = _keep


def _keep_products(primitive, *values, **params):
  """A remat policy: what matrix products and fused attention give is kept.

  Norms, rotations and activations are computed again: they cost little more
  than reading them back. XLA's attention is recomputed as a whole (its scores
  are [T, T]); cuDNN's, with the statistics its backward pass needs, is kept.
  """
  if primitive.name == "dot_product_attention_fwd_wrapper":
    return True
  return jax.checkpoint_policies.dots_with_no_batch_dims_saveable(
    primitive, *values, **params
  )


# What the backward pass keeps, from the least computation to the least memory:
# everything; the results of matrix products; only the input of each block (a
# third more computation).
REMAT = {
  "none": None,
  "dots": _keep_products,
  "block": jax.checkpoint_policies.nothing_saveable,
}


def _product(layer, x):
  product = x @ layer["kernel"]
  return product + layer["bias"] if "bias" in layer else product


def _one_by_one(layers, x):
  return [_product(layer, x) for layer in layers]


def _side_by_side(layers, x):
  """One product in place of several: the input is read once. Same sums."""
  joined = jax.tree.map(lambda *leaves: jnp.concatenate(leaves, -1), *layers)
  ends = np.cumsum([layer["kernel"].shape[-1] for layer in layers])[:-1]
  return jnp.split(_product(joined, x), ends, -1)


# How several projections of one input are computed. Heads that lie on several
# devices cannot be joined.
PRODUCTS = {"one_by_one": _one_by_one, "side_by_side": _side_by_side}


def hidden_states(
  config: transformer.ModelConfig,
  params,
  tokens: jax.Array,
  lengths: jax.Array | None = None,
  execution: Execution = Execution(),  # noqa: B008, frozen
) -> jax.Array:
  """Normed hidden states of whole rows.

  Args:
    config: sizes.
    params: as made by `transformer.init`.
    tokens: [B, T], right-padded; what stands after a row's end has no effect
      on what stands before it.
    lengths: [B] tokens of each row, which saves attention behind its end; None
      computes all.
    execution: see there.

  Returns:
    [B, T, D], arbitrary behind a row's end.
  """
  block = transformer.Block(config)
  # Layers may differ in reach and rotation (Gemma 3).
  rules = layer_rules.stacked(config)
  every = layer_rules.rule_of(config, 0)
  positions = jnp.broadcast_to(jnp.arange(tokens.shape[1])[None], tokens.shape)
  products = PRODUCTS[execution.products]
  attend = execution.split_attention(
    functools.partial(attention.whole_rows, implementation=execution.attention)
  )

  def layer(x, stacked):
    params, rule = stacked
    rule = rule or every
    params = execution.place_params(params)
    run = lambda method, *inputs: block.apply(
      {"params": params}, *inputs, method=method
    )
    h = run("before_attention", x)
    projected = products([params[n] for n in ("query", "key", "value")], h)
    heads = run("heads", *projected, positions, rule.frequencies)
    attended = attend(*heads, lengths, window=rule.window)
    x = run("add_attention", x, attended)
    h = run("before_mlp", x)
    x = run("add_mlp", x, *products([params[n] for n in ("gate", "up")], h))
    return execution.place_hidden(x), None

  policy = REMAT[execution.remat]
  if policy is not None:
    # Inside of a loop nothing can be merged with the forward pass anyway.
    in_loop = execution.unroll < config.num_layers
    layer = jax.checkpoint(layer, policy=policy, prevent_cse=not in_loop)
  x = transformer.embed(config, params["embedding"]["embedding"][tokens])
  x, _ = jax.lax.scan(
    layer,
    execution.place_hidden(x),
    (params["blocks"], rules),
    unroll=execution.unroll,
  )
  return transformer.final_norm(config, params, x)
