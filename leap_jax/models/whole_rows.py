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

from leap_jax.models import attention, layer_rules, transformer


def _keep(x):
  return x


@dataclasses.dataclass(frozen=True)
class Execution:
  """How a forward pass and its gradient are computed. Hashable."""

  remat: str = "none"  # a key of REMAT
  attention: str = attention.XLA  # one of attention.IMPLEMENTATIONS
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
  attend = execution.split_attention(
    functools.partial(attention.whole_rows, implementation=execution.attention)
  )

  def layer(x, stacked):
    params, rule = stacked
    rule = rule or every
    variables = {"params": execution.place_params(params)}
    query, key, value = block.apply(
      variables, x, positions, rule.frequencies, method="project"
    )
    attended = attend(query, key, value, lengths, window=rule.window)
    x = block.apply(variables, x, attended, method="finish")
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
