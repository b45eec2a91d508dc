"""The decoder over whole rows, for training.

`decoding` is the other way through the same blocks, with a cache.
Nothing in `Execution` changes what is computed but for rounding.

Shapes: B rows, T tokens, D width.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from leap_jax.models import attention, layer_rules, transformer


def _keep(x):
  return x


@dataclasses.dataclass(frozen=True)
class Execution:
  """How a forward pass and its gradient are computed. Hashable."""

  remat: str = "none"  # a key of REMAT
  attention: str = attention.XLA  # one of attention.IMPLEMENTATIONS
  layers: str = "scan"  # a key of LAYERS
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
  if "bias" in layer:
    product += jnp.broadcast_to(layer["bias"], product.shape)
  return product


def _as_they_are(params):
  return params


def _apart(params):
  """Blocks -> a tuple of layers."""
  rest = {name: tree for name, tree in params.items() if name != "blocks"}
  num_layers = len(jax.tree.leaves(params["blocks"])[0])
  layer = lambda i: jax.tree.map(lambda x: x[i], params["blocks"])
  return rest | {"layers": tuple(layer(i) for i in range(num_layers))}


def _together(params):
  """A tuple of layers -> blocks; what is None stays so."""
  rest = {name: tree for name, tree in params.items() if name != "layers"}
  stack = lambda *leaves: jnp.stack(leaves)
  return rest | {"blocks": jax.tree.map(stack, *params["layers"])}


def _scan(config, layer, x, params):
  body = lambda x, stacked: (layer(x, *stacked), None)
  rules = layer_rules.stacked(config)
  if rules is None:  # all layers are alike
    rule = layer_rules.rule_of(config, 0)
    body = lambda x, stacked: (layer(x, stacked[0], rule), None)
  x, _ = jax.lax.scan(body, x, (params["blocks"], rules))
  return x


def _unroll(config, layer, x, params):
  for i, layer_params in enumerate(params["layers"]):
    rule = layer_rules.rule_of(config, i)
    window = config.local_window if i in config.local_layers else None
    x = layer(x, layer_params, rule._replace(window=window))
  return x


class Layers(NamedTuple):
  """A way through the layers, and the parameters' form that it takes."""

  arrange: Callable[[Any], Any]  # from blocks, once for an update
  restore: Callable[[Any], Any]  # gradients to blocks
  run: Callable[..., jax.Array]


# "scan" is short to compile. "unrolled" keeps what the backward pass needs
# where it was computed: a scan copies it into arrays of all layers, which it
# first fills with zeros, and out of them again (an eighth of the time of an
# update on an H200).
LAYERS = {
  "scan": Layers(_as_they_are, _as_they_are, _scan),
  "unrolled": Layers(_apart, _together, _unroll),
}


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
    params: as made by `transformer.init`, and arranged for `execution.layers`.
    tokens: [B, T], right-padded; what stands after a row's end has no effect
      on what stands before it.
    lengths: [B] tokens of each row, which saves attention behind its end; None
      computes all.
    execution: see there.

  Returns:
    [B, T, D], arbitrary behind a row's end.
  """
  block = transformer.Block(config)
  positions = jnp.broadcast_to(jnp.arange(tokens.shape[1])[None], tokens.shape)
  attend = execution.split_attention(
    functools.partial(attention.whole_rows, implementation=execution.attention)
  )

  def layer(window, x, params, frequencies):
    params = execution.place_params(params)
    run = lambda method, *inputs: block.apply(
      {"params": params}, *inputs, method=method
    )
    project = lambda names, h: [_product(params[name], h) for name in names]
    projected = project(("query", "key", "value"), run("before_attention", x))
    heads = run("heads", *projected, positions, frequencies)
    x = run("add_attention", x, attend(*heads, lengths, window=window))
    x = run("add_mlp", x, *project(("gate", "up"), run("before_mlp", x)))
    return execution.place_hidden(x)

  def remembered(x, params, rule):
    # A window is a number or, where a scan walks over different layers, traced.
    policy = REMAT[execution.remat]
    is_traced = isinstance(rule.window, jax.Array)
    run = layer if is_traced else functools.partial(layer, rule.window)
    if policy is not None:
      # In a loop nothing can be merged with the forward pass anyway.
      run = jax.checkpoint(
        run, policy=policy, prevent_cse=execution.layers != "scan"
      )
    window = (rule.window,) if is_traced else ()
    return run(*window, x, params, rule.frequencies)

  x = transformer.embed(config, params["embedding"]["embedding"][tokens])
  x = LAYERS[execution.layers].run(
    config, remembered, execution.place_hidden(x), params
  )
  return transformer.final_norm(config, params, x)
